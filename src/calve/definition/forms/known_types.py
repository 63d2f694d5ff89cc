"""What the forms must know about step types."""

from typing import Protocol


class StepTypeNames(Protocol):
    """Knows the step types and the job templates by name."""

    def resolve(self, name: str) -> str | None:
        """Return the spelling of a step type that is written in any case; None if there is none."""
        ...

    def template(self, name: str, version: str | None) -> str | None:
        """Return the step type behind a job template; None if there is no such template."""
        ...

    def config(self, type_name: str) -> tuple[str, frozenset[str]] | None:
        """Return the name of the map that configures a step type, and the fields of that map."""
        ...
