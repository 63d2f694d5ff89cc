"""Worker processes that are started together, started again when they crash, and that end with whoever started them."""

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from calve.cli.signals import counted, within
from calve.cli.state import State
from calve.environment import start

if TYPE_CHECKING:
    import subprocess

_OFTEN = 0.2
_PAUSE = 1.0
"""How long a worker has to have lived to be started again at once, in seconds."""


class Team:
    """Some ``calve worker`` processes."""

    def __init__(self, state: State, size: int, options: tuple[str, ...]) -> None:
        self._settings = state.settings
        project = str(state.settings.project)
        self._command = [sys.executable, "-m", "calve", "-C", project, "worker", "--parent", str(os.getpid()), *options]
        self._command += ["--json"] if state.json else []
        self._size = size
        self._members: dict[int, tuple[subprocess.Popen[bytes], float]] = {}

    def run(self, greet: Callable[[], None], check: Callable[[], None] = lambda: None) -> None:
        """Keep them going until SIGINT or SIGTERM, or until ``check`` raises; then let them come to their end."""
        with counted(self._kill, within=within(self._settings)) as signals:
            greet()
            try:
                while not signals():
                    check()
                    self._mend()
                    time.sleep(_OFTEN)
            finally:
                for process, _ in self._members.values():
                    process.terminate()
                for process, _ in self._members.values():
                    process.wait()

    def _mend(self) -> None:
        for place in range(self._size):
            process, since = self._members.get(place, (None, 0.0))
            if process is not None and process.poll() is None:
                continue
            if process is not None and time.monotonic() - since < _PAUSE:
                continue
            if process is not None:
                click.echo(f"worker {process.pid} has ended with {process.returncode}; another one starts", err=True)
            # In a session of its own, so that Ctrl-C reaches us alone: we pass it on.
            self._members[place] = (start(self._command), time.monotonic())

    def _kill(self) -> None:
        for process, _ in self._members.values():
            process.kill()
