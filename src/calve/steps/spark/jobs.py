"""The jobs of Spark steps: SQL, merges, Python functions and applications; and the audit of the rows they wrote.

``run`` and ``audit`` know nothing of targets: they work on the branch that they are given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from calve.engine import Outcome, State, StepContext
from calve.errors import CalveError, SourceUnstable
from calve.lake import Lake
from calve.merging import merge
from calve.settings import Settings
from calve.steps.failures import failure_of, message_of, user_error
from calve.steps.processes import Workspace
from calve.steps.spark.connect_server import ConnectServers
from calve.steps.spark.errors import name_hint, translated
from calve.steps.spark.event_log import Usage
from calve.steps.spark.functions import run_function
from calve.steps.spark.progress import usage_artifact, usage_line
from calve.steps.spark.sessions import StepSession, StepSessions
from calve.steps.spark.spark_submit import Submission
from calve.steps.spark.sql_script import Script
from calve.steps.sql import SqlText, check_expectation, result_outputs


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of running a job once."""

    outcome: Outcome
    written: frozenset[str] = frozenset()
    """The tables that it wrote to, as far as is known."""


class Jobs:
    """Runs the jobs of Spark steps."""

    def __init__(self, settings: Settings, workspace: Workspace, lake: Lake) -> None:
        self._settings = settings
        self._workspace = workspace
        self._lake = lake
        self._servers = ConnectServers(settings, workspace)
        self._sessions = StepSessions(settings, workspace, self._servers)

    def close(self) -> None:
        """Stop the worker's Spark Connect servers."""
        self._servers.close()

    def run(self, context: StepContext, config: Mapping[str, Any], branch: str) -> JobResult:
        """Run the step's job, which writes to a branch, or to ``main`` if ``branch`` is empty.

        Raises:
            StepFailed: it cannot be started, or Spark reports an error.
        """
        if "application" in config or "jar" in config:
            found, events = Submission(self._settings, self._workspace, config).run(context, branch)
            outcome = _with_usage(found, None if events is None else events.usage_if_any(), context)
            return _job_result(outcome, config, *((frozenset(), frozenset()) if events is None else events.tables()))
        with self._sessions.open(context, config, branch) as session:
            if "function" in config:
                found = run_function(session, self._workspace, config, branch)
                outcome = _with_usage(found, session.usage(), context)
            elif "merge" in config:
                outcome = _with_usage(_merge(session, config["merge"]), session.usage(), context)
            else:
                outcome = self._sql(session, config)
            return _job_result(outcome, config, *session.tables())

    def audit(self, context: StepContext, config: Mapping[str, Any], branch: str) -> None:
        """Run the step's audit queries on what the job wrote to a branch.

        Raises:
            StepFailed: an audit does not hold.
        """
        texts = config.get("audit")
        if not texts:
            return
        with self._sessions.open(context, config, branch) as session:
            for number, text in enumerate(texts, start=1):
                source = SqlText(f"spark.audit {number}" if len(texts) > 1 else "spark.audit", text)
                self._script(session).audit(source, config.get("parameters", {}))

    def _sql(self, session: StepSession, config: Mapping[str, Any]) -> Outcome:
        source = SqlText(str(config.get("file", "spark.script")), str(config["script"]))
        done = self._script(session).run(source, config.get("parameters", {}), keep=config["max_rows"])
        last = done[-1]
        check_expectation(config.get("expect"), last.rows)
        counted = {} if last.count is None else {"row_count": last.count}
        outputs = {**counted, **result_outputs(config["fetch"], last.rows, config["max_rows"])}
        usage = session.usage()
        session.context.log(usage_line(usage, done))
        return Outcome(State.DONE, outputs, {"spark": usage_artifact(usage, done)})

    def _script(self, session: StepSession) -> Script:
        return session.script(lambda error: name_hint(error, self._lake))


def _merge(session: StepSession, given: Mapping[str, Any]) -> Outcome:
    """Merge rows into a table with ``calve.merge``, which logs what it found and which plan it chose."""
    context = session.context
    with translated(context, f"The merge into {given['into']}", session.last_output):
        try:
            merged = merge(cast("Any", session.spark), **given, log=lambda line: context.log(f"-- {line.rstrip()}\n"))
        except SourceUnstable as error:  # the user decides what the source returns
            raise user_error(message_of(error)) from error
        except CalveError as error:
            raise failure_of(error) from error
    kept = {
        "plan": merged.plan,
        "reason": merged.reason,
        "rows": merged.rows,
        "matched": merged.matched,
        "appended": merged.appended,
        "parts": [{"part": part.name, "rows": part.rows, "seconds": round(part.seconds, 3)} for part in merged.parts],
    }
    return Outcome(State.DONE, {"row_count": merged.rows}, {"merge": kept})


def _with_usage(outcome: Outcome, usage: Usage | None, context: StepContext) -> Outcome:
    """Log what a job read and wrote, and add it to the artifacts."""
    context.log(usage_line(usage))
    return replace(outcome, artifacts={**outcome.artifacts, "spark": usage_artifact(usage)})


def _job_result(
    outcome: Outcome, config: Mapping[str, Any], read: frozenset[str], written: frozenset[str]
) -> JobResult:
    """Add the tables that a job read and wrote, and its capture, to the artifacts, for lineage."""
    tables = {"tables_read": sorted(read), "tables_written": sorted(written)}
    capture = {"capture_id": str(config["capture"])} if config.get("capture") else {}
    return JobResult(replace(outcome, artifacts={**outcome.artifacts, **tables, **capture}), written)
