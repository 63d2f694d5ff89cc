"""Output params and artifacts that the work of a step hands in while it runs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calve.engine.ending import take_outputs
from calve.engine.model import Json
from calve.engine.statuses import HOLDING
from calve.engine.work import Tools, Work
from calve.errors import ActionRefused, Conflict, WorkflowMissing
from calve.texts import check_text

AGAIN = 20


def put_outputs(tools: Tools, attempt_uuid: str, outputs: Mapping[str, Any], artifacts: Json) -> None:
    """Take outputs of an attempt that runs.

    Raises:
        WorkflowMissing: there is no such attempt.
        ActionRefused: it does not run, or artifacts are given for a step that runs others.
        ParamError: the step declares no such param.
        RequestInvalid: a text in them is not text.
    """
    check_text({"params": outputs, "artifacts": artifacts})
    known = tools.state.attempt(attempt_uuid)
    if known is None:
        raise WorkflowMissing(f"There is no attempt {attempt_uuid}.", attempt=attempt_uuid)
    if artifacts and not known.is_leaf:
        raise ActionRefused(
            f"The step {known.step_id} runs other steps: its artifacts are the engine's own.",
            remedy="Hand over artifacts of the steps inside it.",
        )
    for _ in range(AGAIN):
        work = Work(tools, tools.clock())
        state = work.state(known.run_uuid, is_fresh=True)
        attempt = state.attempts[known.step_id]
        if attempt.uuid != attempt_uuid or attempt.status not in HOLDING:
            raise ActionRefused(f"The attempt {attempt_uuid} is over.", remedy="Outputs are taken while it runs.")
        attempt = replace(attempt, artifacts={**attempt.artifacts, **artifacts})
        work.set_attempt(state, take_outputs(work, state, attempt, outputs) if outputs else attempt)
        try:
            work.settle(tools.state.commit(work.changes()))
        except Conflict:
            work.drop()
        else:
            return
    raise Conflict(f"The attempt {attempt_uuid} moves all the time.")
