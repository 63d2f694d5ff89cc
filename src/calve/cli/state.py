"""What one invocation of the command line knows."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from calve.app import Workplace
    from calve.capture import Captures
    from calve.delivery import Deliveries
    from calve.settings import Settings


@dataclass
class State:
    """The global options, and the settings once they are read."""

    project: Path | None = None
    debug: bool = False
    json: bool = False

    @cached_property
    def settings(self) -> "Settings":
        """The project's settings; reading them arms the failpoint that they name."""
        from calve import failpoints, settings

        loaded = settings.load(self.project)
        failpoints.arm(loaded.failpoints)
        return loaded

    def captures(self) -> "AbstractContextManager[Captures]":
        """Open the project's captures."""
        from calve.app import open_captures

        return open_captures(self.settings)

    def deliveries(self) -> "AbstractContextManager[Deliveries]":
        """Open the project's deliveries."""
        from calve.app import open_deliveries

        return open_deliveries(self.settings)

    def workplace(self) -> "AbstractContextManager[Workplace]":
        """Open the project's engine."""
        from calve.app import open_workplace

        return open_workplace(self.settings)

    @cached_property
    def user(self) -> str:
        """Whoever runs the command."""
        import getpass
        import os

        try:
            return getpass.getuser()
        except (KeyError, OSError):  # a container may know its user by number only
            return str(os.getuid())

    @property
    def wants_traceback(self) -> bool:
        """Tell whether ``--debug`` or CALVE_DEBUG was given."""
        loaded = self.__dict__.get("settings")
        return self.debug or (loaded is not None and loaded.debug)


def _remember(ctx: click.Context, _: click.Parameter, value: Any) -> None:
    ctx.ensure_object(State).json = value


json_option = click.option(
    "--json", is_flag=True, expose_value=False, callback=_remember, help="Print JSON for programs."
)
"""Gives a command ``--json``, which then stands in its ``State``."""
