"""The variables that this process was started with.

Programs of steps may run as the same user as calve, and Linux lets them read ``/proc/PID/environ``: the variables that
a process was started with. Changing ``os.environ`` does not change that file, so ``withdraw`` overwrites its memory.
"""

import ctypes
import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

PREFIX = "CALVE_"
"""The prefix of calve's own variables."""
_HANDED_OVER = "CALVE_ENVIRONMENT_FD"
"""Names the file descriptor from which a child process reads the variables that its parent withdrew."""
_SET_DUMPABLE = 4

_withdrawn: dict[str, str] = {}
"""calve's own variables, after they were removed from the environment."""


def given() -> dict[str, str]:
    """Return the variables that this process was started with, including those that were withdrawn."""
    return {**_withdrawn, **os.environ}  # noqa: TID251 - the one place


def withdraw() -> None:
    """Remove calve's own variables from the environment, and hide all of it from other processes of the same user.

    Variables of other programs (``AWS_SECRET_ACCESS_KEY``) stay in ``os.environ``, because libraries read them, but
    ``/proc`` no longer shows them.
    """
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    for name, value in list(os.environ.items()):  # noqa: TID251 - the one place
        shown = libc.getenv(os.fsencode(name))
        if name.startswith(PREFIX):
            _withdrawn[name] = value
            del os.environ[name]  # noqa: TID251 - the one place
        else:
            os.environ[name] = value  # noqa: TID251 - the C library copies it
        if shown is not None and libc.getenv(os.fsencode(name)) != shown:
            length = len(os.fsencode(name)) + 1 + len(os.fsencode(value))
            ctypes.memset(shown + len(os.fsencode(value)) - length, 0, length)
    close_memory()
    if descriptor := _withdrawn.pop(_HANDED_OVER, None):
        with os.fdopen(int(descriptor), encoding="utf-8") as pipe:
            _withdrawn.update(json.load(pipe))


def close_memory() -> None:
    """Make this process not dumpable, so that other processes of the same user (except root) cannot read its memory."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def start(command: list[str]) -> "Popen[bytes]":
    """Start another calve process in a new session, and pass it calve's own variables through a pipe."""
    from subprocess import Popen  # not needed by most commands

    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as pipe:  # noqa: PTH123 - a descriptor
        try:
            variables = {**os.environ, _HANDED_OVER: str(reading)}  # noqa: TID251 - the one place
            process = Popen(command, env=variables, pass_fds=(reading,), start_new_session=True)  # noqa: S603 - our own
        finally:
            os.close(reading)
        with suppress(BrokenPipeError):  # it has ended already; its parent will notice
            json.dump(_withdrawn, pipe)
            pipe.flush()
    return process
