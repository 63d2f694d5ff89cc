"""What a restart runs again, and what it leaves as it is. Pure."""

from collections.abc import Mapping

from calve.engine.dag import Dag
from calve.engine.model import Attempt, Restart, RunPolicy


def run_again(dag: Dag, attempts: Mapping[str, Attempt], policy: RunPolicy, restart: Restart) -> frozenset[str]:
    """Return the steps that a restart runs again, given the newest attempt of each step over all earlier runs."""
    if policy in {RunPolicy.RESTART_FROM_BEGINNING, RunPolicy.START_FRESH_NEW_RUN}:
        return frozenset(dag.successors)
    if policy is RunPolicy.RESTART_FROM_SPECIFIC:
        return dag.with_descendants(restart.step_path[:1])
    incomplete = {
        step_id
        for step_id in dag.successors
        if step_id not in attempts or not attempts[step_id].status.is_complete or step_id in restart.skip
    }
    return dag.with_descendants(incomplete)
