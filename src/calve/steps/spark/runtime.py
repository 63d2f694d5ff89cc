"""Carries out Spark steps.

What a step read, wrote and shuffled is kept as its artifact ``spark``: ``rows_read``, ``bytes_read``,
``rows_written``, ``bytes_written``, ``shuffle_bytes`` (what each means stands in ``events``; all are left out where
nobody tells, as on a server of somebody else's), and ``statements``, a list of the same with ``statement`` (its first
line), ``seconds`` and ``rows``, how many it gave or wrote.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calve.definition.step_types.queries import SPARK
from calve.engine.ports import Outcome, State, StepContext
from calve.settings import Settings
from calve.steps.configs import fields
from calve.steps.failures import fatal, settled
from calve.steps.processes import end
from calve.steps.spark.opening import Opened, Opener
from calve.steps.spark.scripts import Done
from calve.steps.spark.servers import Servers
from calve.steps.spark.telling import artifact, told_usage
from calve.steps.sql import results
from calve.steps.surroundings import Surroundings


class Spark:
    """Runs SQL, merges and functions in a session of the worker's warm server; applications through spark-submit."""

    def __init__(self, settings: Settings, surroundings: Surroundings) -> None:
        self._settings = settings
        self._surroundings = surroundings
        self._servers = Servers(settings, surroundings)
        self._opener = Opener(settings, surroundings, self._servers)

    def execute(self, context: StepContext) -> Outcome:
        """Run it to its end."""
        return settled(self._execute, context)

    def terminate(self, context: StepContext) -> None:
        """End its programs; what ran in a session was cancelled, or died with the server of its worker."""
        end(context, self._surroundings)

    def close(self) -> None:
        """End the worker's servers."""
        self._servers.close()

    def _execute(self, context: StepContext) -> Outcome:
        config = fields(context, SPARK)
        done = self._run(context, config, str(config.get("branch") or ""))
        return replace(done, outputs={"published": False, "branch": "", **done.outputs})

    def _run(self, context: StepContext, config: Mapping[str, Any], branch: str) -> Outcome:
        if "script" in config or "file" in config:
            return self._sql(context, config, branch)
        raise fatal("This kind of Spark step cannot be carried out yet.")

    def _sql(self, context: StepContext, config: Mapping[str, Any], branch: str) -> Outcome:
        text = self._text(config)
        with self._opener.open(context, config, branch) as opened:
            done = opened.script().run(text, config.get("parameters", {}), keep=config["max_rows"])
            last = done[-1]
            results.check(config.get("expect"), last.rows)
            outputs = results.outputs(config["fetch"], last.rows, config["max_rows"])
            return _outcome(opened, done, {"row_count": last.count, **outputs})

    def _text(self, config: Mapping[str, Any]) -> str:
        if "script" in config:
            return str(config["script"])
        path = self._surroundings.locate(str(config["file"]), "The SQL file")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise fatal(f"spark.file cannot be read: {error}") from None


def _outcome(opened: Opened, done: Sequence[Done], outputs: Mapping[str, Any]) -> Outcome:
    usage = opened.used()
    opened.context.log(told_usage(usage, done))
    return Outcome(State.DONE, outputs, {"spark": artifact(usage, done)})
