"""Templates that were pushed, beside those that are installed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from calve.definition.templates.model import JobTemplate

Versions = Mapping[str, JobTemplate]
"""A template in its versions."""


class PushedTemplates(Protocol):
    """Knows the templates that were pushed."""

    def templates(self, job_type: str | None = None) -> Sequence[JobTemplate]:
        """Return those of a type, or all, by type and version."""
        ...


class AllTemplates(Mapping[str, Versions]):
    """Templates by type and version; those that were pushed are looked up each time, because others push them too."""

    def __init__(self, installed: Mapping[str, Versions], pushed: PushedTemplates) -> None:
        self._installed = installed
        self._pushed = pushed

    def __getitem__(self, job_type: str) -> Versions:
        if job_type in self._installed:
            return self._installed[job_type]
        found = {template.definition.version: template for template in self._pushed.templates(job_type)}
        if not found:
            raise KeyError(job_type)
        return found

    def __iter__(self) -> Iterator[str]:
        pushed = (template.definition.job_type for template in self._pushed.templates())
        yield from dict.fromkeys((*self._installed, *pushed))

    def __len__(self) -> int:
        return sum(1 for _ in self)
