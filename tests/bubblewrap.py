"""Bubblewrap for tests."""

from functools import partial

from calve.testing.debian import on_path, program


def bubblewrap() -> str:
    """Return the path of the program; a test that needs it fails if it cannot be installed."""
    return str(program(partial(on_path, "bwrap"), "bubblewrap"))
