"""A session of a command: the operations, performed by a server or in this process, and facts about the project."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from calve.app import Project
    from calve.operations import Operations

Document = dict[str, Any]
"""The answer of an operation, in JSON's own types; in Maestro's format where Maestro has the document."""


@dataclass(frozen=True, slots=True)
class Session:
    """Operations, which are the same for a command whether a server performs them or this process does."""

    operations: "Operations"
    project: "Project | None" = None
    """The project, if this process performs them."""
    view_url: Callable[[Mapping[str, Any]], str | None] = lambda _: None
    """Returns the address of the page that shows an instance, if the server has one."""

    def now(self) -> int:
        """Return the time in milliseconds; without a server, by the clock of the state database."""
        return int(time.time() * 1_000) if self.project is None else self.project.engine.tools.clock()

    def has_worker(self) -> bool:
        """Tell whether a process runs the workflows of this project; a server has its own."""
        return self.project is None or self.project.administration.is_worked

    def warn_without_worker(self) -> None:
        """Warn on standard error if no worker runs."""
        if not self.has_worker():
            click.echo("No worker runs on this project. To start one: calve up", err=True)
