"""The SQL step: runs statements on a database, and returns rows of the last one as outputs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calve.definition.step_types import SQL
from calve.engine import Outcome, StepContext
from calve.namespaces import is_for
from calve.steps.config import fields
from calve.steps.failures import fatal, settled
from calve.steps.processes import ForkServers, resolved_file
from calve.steps.sql.connections import parse
from calve.steps.sql.state_database import refuse_address

WORK = "calve.steps.sql.execution:execute"
"""The function that runs the statements, for the processes that import it."""


class Sql:
    """Runs the statements of a step in order, and keeps rows of the last one.

    The statements run in a separate process that knows nothing of calve's state. After a crash they may run again: the
    transaction was either committed or rolled back, and calve cannot tell which. So the statements should be
    idempotent.
    """

    def __init__(self, connections: Mapping[str, str], project: Path, store: str, forks: ForkServers) -> None:
        self._connections = connections
        self._project = project
        self._store = store
        self._forks = forks

    def execute(self, context: StepContext) -> Outcome:
        """Run the statements."""
        return settled(self._run, context)

    def terminate(self, context: StepContext) -> None:
        """Do nothing: an interruption cancels the statement, and a lost connection ends its transaction."""

    def close(self) -> None:
        """Stop the processes that run statements."""
        self._forks.close()

    def _run(self, context: StepContext) -> Outcome:
        config = fields(context, SQL)
        url = parse(self._url(config, context), self._project)
        refuse_address(url, self._store, self._project)
        job = {
            "project": str(self._project),
            "url": url.render_as_string(hide_password=False),
            "name": str(config.get("file", "sql.query")),
            "text": self._text(config, context),
            "values": dict(config.get("parameters", {})),
            "config": {name: config.get(name) for name in ("transaction", "max_rows", "fetch", "expect")},
        }
        return self._forks.run(context, job)

    def _url(self, config: Mapping[str, Any], context: StepContext) -> str:
        name = config.get("connection")
        if name is None:
            return str(config["url"])
        workflow_id = context.place.workflow_id
        known = [each for each in self._connections if is_for(each, workflow_id)]
        if name not in known:  # the message does not reveal connections of other namespaces
            raise fatal(
                f"There is no connection {name} for {workflow_id} in the settings.",
                remedy=f"[connections] has for it: {', '.join(known) or 'none'}.",
            )
        return self._connections[name]

    def _text(self, config: Mapping[str, Any], context: StepContext) -> str:
        if "query" in config:
            return str(config["query"])
        path = str(config["file"])
        return resolved_file(self._project / Path(path).expanduser(), path, "sql.file", context)
