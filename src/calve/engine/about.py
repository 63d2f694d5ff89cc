"""What the work under way in a thread is about, for whoever logs something meanwhile."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_ABOUT: ContextVar[Mapping[str, str | int]] = ContextVar("calve_about")


def current() -> Mapping[str, str | int]:
    """Return the ids of the run, step and attempt that this thread works on; none, if it does something else."""
    return _ABOUT.get({})


@contextmanager
def about(**ids: str | int | None) -> Iterator[None]:
    """Work on something; ids that are not known are left out."""
    token = _ABOUT.set({**current(), **{name: value for name, value in ids.items() if value is not None}})
    try:
        yield
    finally:
        _ABOUT.reset(token)
