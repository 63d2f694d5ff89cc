"""Errors and warnings about a document, each with its position and a hint."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from calve.definition.document import Node
from calve.errors import DefinitionInvalid

MOST = 200
"""How many errors, and how many warnings, are reported; finding a hint for each takes time."""


class TooManyProblems(Exception):
    """Too many errors were found to continue."""


class Severity(StrEnum):
    """Whether a problem stops the definition from being used."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or looks wrong."""

    code: str
    message: str
    path: str
    line: int
    column: int
    hint: str = ""
    drawing: str = ""
    severity: Severity = Severity.ERROR

    def as_json(self) -> dict[str, Any]:
        """Return what ``--json`` prints for it."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "hint": self.hint,
            "drawing": self.drawing,
            "path": self.path,
            "line": self.line,
            "column": self.column,
        }


@dataclass(slots=True)
class Problems:
    """The problems of one document, in the order they were found."""

    found: list[Problem] = field(default_factory=list)
    untold: int = 0
    """How many warnings were found but not reported."""

    def __iter__(self) -> Iterator[Problem]:
        yield from sorted(self.found, key=lambda problem: (problem.line, problem.column))
        if self.untold:
            message = f"there are {self.untold} more warnings"
            yield Problem("more_warnings", message, "", 1, 1, severity=Severity.WARNING)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The errors, in the order of the document."""
        return tuple(problem for problem in self if problem.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The warnings, in the order of the document."""
        return tuple(problem for problem in self if problem.severity is Severity.WARNING)

    def add(
        self,
        node: Node,
        code: str,
        message: str,
        *,
        hint: str = "",
        drawing: str = "",
        severity: Severity = Severity.ERROR,
        at_key: bool = False,
    ) -> None:
        """Report a problem at a node, or at its key.

        Raises:
            TooManyProblems: there are too many errors already.
        """
        if sum(problem.severity is severity for problem in self.found) >= MOST:
            if severity is Severity.ERROR:
                raise TooManyProblems
            self.untold += 1
            return
        mark = node.key_mark if at_key and node.key_mark else node.mark
        self.found.append(Problem(code, message, node.path, mark.line, mark.column, hint, drawing, severity))

    def warn(self, node: Node, code: str, message: str, *, hint: str = "", drawing: str = "") -> None:
        """Report a warning."""
        self.add(node, code, message, hint=hint, drawing=drawing, severity=Severity.WARNING)

    def raise_if_any(self, name: str) -> None:
        """Raise all errors together, if there are any."""
        if self.errors:
            raise self.as_error(name)

    def as_error(self, name: str) -> DefinitionInvalid:
        """Return all errors as one exception; there must be at least one."""
        count = len(self.errors)
        first = self.errors[0]
        more = "" if count == 1 else f" (and {count - 1} more)"
        return DefinitionInvalid(
            f"{name}:{first.line}:{first.column}: {first.message}{more}",
            remedy=first.hint,
            file=name,
            problems=[problem.as_json() for problem in self],
        )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to ``name``, ignoring case; None if none is close."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    near = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean x?`` for the nearest known name, or the known names if there are few."""
    names = list(known)
    if near := nearest(name, names):
        return f"did you mean {near}?"
    return f"one of {', '.join(names)}" if 0 < len(names) <= 12 else ""
