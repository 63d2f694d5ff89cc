"""The ids of the run, step and attempt that a thread works on, for its log messages."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_ABOUT: ContextVar[Mapping[str, str | int]] = ContextVar("calve_about")


def current_log_context() -> Mapping[str, str | int]:
    """Return the ids of the run, step and attempt that this thread works on, if any."""
    return _ABOUT.get({})


@contextmanager
def log_context(**ids: str | int | None) -> Iterator[None]:
    """Add ids to the log messages of this thread; None values are left out."""
    token = _ABOUT.set({**current_log_context(), **{name: value for name, value in ids.items() if value is not None}})
    try:
        yield
    finally:
        _ABOUT.reset(token)
