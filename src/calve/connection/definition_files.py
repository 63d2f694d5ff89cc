"""Files with workflow definitions: YAML, JSON or Python, with the scripts and files that they name."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from calve.definition import JobTemplate, Loaded, StepFiles, Vocabulary

SUFFIXES = frozenset({".yaml", ".yml", ".json", ".py"})


def load_file(file: Path, project: Path, vocabulary: "Vocabulary | None" = None) -> "list[Loaded]":
    """Return the definition in a file; a Python file may have several.

    Args:
        file: the file; ``-`` is standard input.
        project: the folder of the files that steps read.
        vocabulary: the step types and job templates that the definition may use; by default, those installed.
    """
    from calve.definition import ScriptFolder, installed, load

    vocabulary = vocabulary or installed()
    scripts, files = ScriptFolder(_folder(file)), step_files(file, project)
    if file.suffix == ".py":
        from calve.dsl import workflows_in

        found = workflows_in(file)
        if not found:
            raise RequestInvalid(f"{file} defines no workflow", remedy="Define one: with Workflow('id') as wf: …")
        return [workflow.load(vocabulary=vocabulary, scripts=scripts, files=files) for workflow in found]
    try:
        text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise RequestInvalid(f"{file} cannot be read: {error.strerror}") from error
    return [load(text, name=str(file), vocabulary=vocabulary, scripts=scripts, files=files)]


def step_files(file: Path, project: Path) -> "StepFiles":
    """Return the files that the steps of a definition may read: those of the project and beside the definition."""
    from calve.definition import ProjectFiles

    return ProjectFiles(project, _folder(file))


def vocabulary_of(templates: "Callable[[], Iterable[Any]]") -> "Vocabulary":
    """Return the vocabulary for a definition to push: step types installed here, and job templates stored there.

    Args:
        templates: returns the stored templates, as ``Operations.templates`` does.
    """
    from calve.definition import vocabulary_with

    return vocabulary_with(_Templates(templates))


@dataclass
class _Templates:
    """Fetches job templates once, and only if a definition uses a step type that is not installed."""

    fetch: Callable[[], Iterable[Any]]

    @cached_property
    def _stored(self) -> "list[JobTemplate]":
        from calve.definition import JobTemplate

        return [JobTemplate.model_validate(one) for one in self.fetch()]

    def templates(self, job_type: str | None = None) -> "Sequence[JobTemplate]":
        """Return the job templates of a type, or all."""
        return [one for one in self._stored if job_type in {None, one.definition.job_type}]


def _folder(file: Path) -> Path:
    return Path() if str(file) == "-" else file.parent
