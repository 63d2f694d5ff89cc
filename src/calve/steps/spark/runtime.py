"""Carries out Spark steps.

What a step read, wrote and shuffled is kept as its artifact ``spark``: ``rows_read``, ``bytes_read``,
``rows_written``, ``bytes_written``, ``shuffle_bytes`` (what each means stands in ``events``; all are left out where
nobody tells, as on a server of somebody else's), and for SQL ``statements``, a list of the same with ``statement``
(its first line), ``seconds`` and ``rows``, how many it gave or wrote. A merge keeps ``merge`` besides: ``plan``,
``reason``, ``rows``, ``matched``, ``appended`` and ``parts``, each with ``part``, ``rows`` and ``seconds``.
Beside it stand ``tables_read`` and ``tables_written``, as far as Spark tells, ``capture_id`` of a step that works on a
capture, and ``published`` of one with targets: a list of ``table`` and ``snapshot_id``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calve.definition.step_types.queries import SPARK, is_sql_file
from calve.engine.ports import Outcome, State, StepContext
from calve.errors import CalveError
from calve.lake import CurrentRights, Lake, Right, all_open
from calve.namespaces import namespace_of
from calve.settings import Settings
from calve.steps.configs import fields
from calve.steps.failures import fatal, of_error, settled
from calve.steps.processes import end
from calve.steps.services import Deliveries
from calve.steps.spark.delivering import Job, Worked, deliver
from calve.steps.spark.functions import run_function
from calve.steps.spark.merges import run_merge
from calve.steps.spark.names import hint
from calve.steps.spark.opening import Opened, Opener
from calve.steps.spark.scripts import Script
from calve.steps.spark.servers import Servers
from calve.steps.spark.submitting import Submission, used
from calve.steps.spark.telling import artifact, told_usage
from calve.steps.sql import results
from calve.steps.sql.positions import Source
from calve.steps.surroundings import Surroundings


class Spark:
    """Runs SQL, merges and functions in a session of the worker's warm server; applications through spark-submit."""

    def __init__(
        self,
        settings: Settings,
        surroundings: Surroundings,
        lake: Lake,
        deliveries: Deliveries,
        tables: CurrentRights = all_open,
    ) -> None:
        self._settings = settings
        self._surroundings = surroundings
        self._lake = lake
        self._deliveries = deliveries
        self._tables = tables
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
        config = self._with_files(fields(context, SPARK), context)
        if "merge" in config:
            self._check_merge(context, config)
        if context.targets:
            if config.get("branch"):
                raise fatal("A step with targets writes to a branch of its own; leave spark.branch out.")
            job = Job(
                lambda branch: self._run(context, config, branch),
                lambda branch: self._audit(context, config, branch),
                self._has_branch,
            )
            return deliver(context, config, self._deliveries, job)
        if config.get("audit"):
            raise fatal("spark.audit looks at what is written to targets, and the step names none.")
        found = self._run(context, config, str(config.get("branch") or "")).outcome
        return replace(found, outputs={"published": False, "branch": "", **found.outputs})

    def _check_merge(self, context: StepContext, config: Mapping[str, Any]) -> None:
        """Refuse a merge into a table that the workflow may not write to; what SQL and programs do, Spark alone knows.

        Raises:
            StepFailed: it may not.
        """
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
            raise of_error(error) from error

    def _run(self, context: StepContext, config: Mapping[str, Any], branch: str) -> Worked:
        if "application" in config or "jar" in config:
            return self._submit(context, config, branch)
        with self._opener.open(context, config, branch) as opened:
            found = self._work(opened, config, branch)
            return Worked(_lineage(found, config, opened.read(), opened.tables()), opened.tables())

    def _work(self, opened: Opened, config: Mapping[str, Any], branch: str) -> Outcome:
        if "function" in config:
            return _told(opened, run_function(opened, self._surroundings, config, branch))
        if "merge" in config:
            return _told(opened, run_merge(opened, config["merge"]))
        return self._sql(opened, config)

    def _sql(self, opened: Opened, config: Mapping[str, Any]) -> Outcome:
        source = Source(str(config.get("file", "spark.script")), str(config["script"]))
        done = self._script(opened).run(source, config.get("parameters", {}), keep=config["max_rows"])
        last = done[-1]
        results.check(config.get("expect"), last.rows)
        counted = {} if last.count is None else {"row_count": last.count}
        outputs = {**counted, **results.outputs(config["fetch"], last.rows, config["max_rows"])}
        usage = opened.used()
        opened.context.log(told_usage(usage, done))
        return Outcome(State.DONE, outputs, {"spark": artifact(usage, done)})

    def _with_files(self, config: Mapping[str, Any], context: StepContext) -> dict[str, Any]:
        """Return the fields with the texts of files, read before anything runs: what is wrong there stops all of it."""
        found = dict(config)
        if "file" in found:
            found["script"] = self._surroundings.read(str(found["file"]), "spark.file", "The SQL file", context)
        if "audit" in found:
            given = found["audit"]
            texts = [given] if isinstance(given, str) else [str(item) for item in given]
            found["audit"] = [self._audit_text(text, context) for text in texts]
        return found

    def _audit_text(self, text: str, context: StepContext) -> str:
        if not is_sql_file(text):
            return text
        return self._surroundings.read(text.strip(), "spark.audit", "The audit file", context)

    def _submit(self, context: StepContext, config: Mapping[str, Any], branch: str) -> Worked:
        found, events = Submission(self._settings, self._surroundings, config).run(context, branch)
        usage = used(events)
        context.log(told_usage(usage))
        tables = frozenset() if events is None else events.tables()
        told = replace(found, artifacts={**found.artifacts, "spark": artifact(usage)})
        return Worked(_lineage(told, config, frozenset() if events is None else events.read(), tables), tables)

    def _audit(self, context: StepContext, config: Mapping[str, Any], branch: str) -> None:
        texts = config.get("audit")
        if not texts:
            return
        with self._opener.open(context, config, branch) as opened:
            for number, text in enumerate(texts, start=1):
                source = Source(f"spark.audit {number}" if len(texts) > 1 else "spark.audit", text)
                self._script(opened).audit(source, config.get("parameters", {}))

    def _script(self, opened: Opened) -> Script:
        return opened.script(lambda error: hint(error, self._lake))

    def _has_branch(self, table: str, branch: str) -> bool:
        try:
            name = self._lake.parse(table)
            metadata = self._lake.catalog(name.catalog).load(name).metadata
        except CalveError:
            return False
        return branch in metadata.get("refs", {})


def _lineage(outcome: Outcome, config: Mapping[str, Any], read: frozenset[str], written: frozenset[str]) -> Outcome:
    """Return an outcome with the tables that the work read and wrote, and the capture that it is of."""
    told = {"tables_read": sorted(read), "tables_written": sorted(written)}
    capture = {"capture_id": str(config["capture"])} if config.get("capture") else {}
    return replace(outcome, artifacts={**outcome.artifacts, **told, **capture})


def _told(opened: Opened, outcome: Outcome) -> Outcome:
    """Return an outcome with what the session read and wrote, which is logged too."""
    usage = opened.used()
    opened.context.log(told_usage(usage))
    return replace(outcome, artifacts={**outcome.artifacts, "spark": artifact(usage)})
