"""The words that a definition may use where it is pushed: what is installed here, and the templates kept there."""

from functools import cached_property
from typing import TYPE_CHECKING

from calve.cli.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calve.definition import JobTemplate, Vocabulary


class _Shelf:
    """Asks for templates once, and only if a definition has a word that is not installed."""

    def __init__(self, state: State) -> None:
        self._state = state

    @cached_property
    def _kept(self) -> "list[JobTemplate]":
        with self._state.desk() as desk:
            return desk.templates()

    def templates(self, job_type: str | None = None) -> "Sequence[JobTemplate]":
        """Return those of a type, or all."""
        return [one for one in self._kept if job_type in {None, one.definition.job_type}]


def words(state: State) -> "Vocabulary":
    """Return the words of the project, or of the server that is named."""
    from calve.definition import vocabulary_with

    return vocabulary_with(_Shelf(state))
