"""The Spark step: prepares the job, then runs it, or has it delivered to the step's targets.

``prepare`` → ``delivery.TargetDelivery.deliver`` opens the attempt's branch → ``jobs.Jobs.run`` → ``jobs.Jobs.audit``
→ ``calve.delivery`` publishes → outcome.

The artifact ``spark`` holds what the step read, wrote and shuffled: ``rows_read``, ``bytes_read``, ``rows_written``,
``bytes_written``, ``shuffle_bytes`` (defined in ``event_log``; absent where they are unknown, as on a server that calve
did not start), and for SQL ``statements``: the same for each one, with ``statement`` (its first line), ``seconds`` and
``rows``, the number that it returned or wrote. A merge adds the artifact ``merge``: ``plan``, ``reason``, ``rows``,
``matched``, ``appended`` and ``parts``, each with ``part``, ``rows`` and ``seconds``. Further artifacts are
``tables_read`` and ``tables_written``, as far as Spark reports them, ``capture_id`` of a step that works on a capture,
and ``published`` of a step with targets: a list of ``table`` and ``snapshot_id``, which is empty if the job failed and
nothing of it was published.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calve.definition.step_types import SPARK, is_sql_file
from calve.engine import Outcome, StepContext
from calve.errors import CalveError
from calve.lake import CurrentRights, Lake, Right, all_open
from calve.namespaces import namespace_of
from calve.settings import Settings
from calve.steps.config import fields
from calve.steps.failures import failure_of, fatal, settled
from calve.steps.processes import Workspace, terminate_programs
from calve.steps.services import Deliveries
from calve.steps.spark.delivery import TargetDelivery
from calve.steps.spark.jobs import Jobs


class Spark:
    """Runs SQL, merges and functions in a session of the worker's warm server; applications through spark-submit."""

    def __init__(
        self,
        settings: Settings,
        workspace: Workspace,
        lake: Lake,
        deliveries: Deliveries,
        tables: CurrentRights = all_open,
    ) -> None:
        self._settings = settings
        self._workspace = workspace
        self._lake = lake
        self._tables = tables
        self._jobs = Jobs(settings, workspace, lake)
        self._delivery = TargetDelivery(deliveries, lake, self._jobs)

    def execute(self, context: StepContext) -> Outcome:
        """Run the job to its end."""
        return settled(self._execute, context)

    def terminate(self, context: StepContext) -> None:
        """End the step's programs; what ran in a session was cancelled, or died with its worker's server."""
        terminate_programs(context, self._workspace)

    def close(self) -> None:
        """Stop the worker's servers."""
        self._jobs.close()

    def _execute(self, context: StepContext) -> Outcome:
        config = self._prepare(context)
        if context.targets:
            return self._delivery.deliver(context, config)
        found = self._jobs.run(context, config, str(config.get("branch") or "")).outcome
        return replace(found, outputs={"published": False, "branch": "", **found.outputs})

    def _prepare(self, context: StepContext) -> dict[str, Any]:
        """Return the step's fields with the texts of its files; check all that can be checked before anything runs.

        Raises:
            StepFailed: a field, a file or a right is missing or wrong.
        """
        config = fields(context, SPARK)
        if "file" in config:
            config["script"] = self._workspace.read(str(config["file"]), "spark.file", "The SQL file", context)
        if "audit" in config:
            given = config["audit"]
            texts = [given] if isinstance(given, str) else [str(item) for item in given]
            config["audit"] = [self._audit_text(text, context) for text in texts]
        if "merge" in config:
            self._check_merge(context, config)
        if context.targets and config.get("branch"):
            raise fatal("A step with targets writes to its own branch; remove spark.branch.")
        if config.get("audit") and not context.targets:
            raise fatal("spark.audit checks the rows written to targets, but the step has no targets.")
        return config

    def _audit_text(self, text: str, context: StepContext) -> str:
        if not is_sql_file(text):
            return text
        return self._workspace.read(text.strip(), "spark.audit", "The audit file", context)

    def _check_merge(self, context: StepContext, config: Mapping[str, Any]) -> None:
        """Refuse a merge into a table that the workflow may not write to; which tables SQL writes, only Spark knows."""
        rights = self._tables()
        if not rights.is_closed:
            return
        parts = str(config["merge"]["into"]).split(".")
        catalog = str(config.get("catalog") or self._lake.default_catalog)
        namespace = str(config.get("namespace") or self._settings.default_namespace)
        around = {1: [catalog, namespace], 2: [catalog]}.get(len(parts), [])
        try:
            table = self._lake.parse(".".join((*around, *parts)))
            rights.require(namespace_of(context.place.workflow_id), Right.WRITE, table)
        except CalveError as error:
            raise failure_of(error) from error
