"""What steps that run programs find around them: the project's folder, an environment, a Python, a Java."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calve.definition.params import FileText
from calve.engine.ports import StepContext
from calve.steps.configs import texts
from calve.steps.failures import fatal
from calve.steps.isolation import Isolation, allowed

_TITLE = ("CALVE_WORKFLOW_ID", "CALVE_INSTANCE_ID", "CALVE_RUN_ID", "CALVE_STEP_ID", "CALVE_ATTEMPT_ID")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The machine and the project as a program sees them."""

    project: Path
    """What relative paths of a definition are relative to."""
    environment: Mapping[str, str]
    """The worker's own environment."""
    python: str
    """The Python that calve itself runs on."""
    grace_seconds: float = 10.0
    """How long a program may take to end after it was asked to."""
    java_home: Path | None = None
    variables: tuple[str, ...] = ()
    """More names of variables that programs are given; ``*`` matches any text."""
    isolation: Isolation = field(default_factory=Isolation)

    @property
    def allowed_environment(self) -> dict[str, str]:
        """The variables of the worker that any program may have."""
        return allowed(self.environment, self.variables)

    def environment_for(self, context: StepContext, more: Mapping[str, Any]) -> dict[str, str]:
        """Return the environment of an attempt's program: what it may have of the worker's, its names and ``more``.

        Raises:
            StepFailed: a variable cannot have such a name or value.
        """
        given = texts(more)
        for name, value in given.items():
            if not name or "=" in name or "\0" in name + value:
                raise fatal(f"env: {name!r} cannot be a variable: its name is empty or holds =, or there is a NUL.")
        names = dict(zip(_TITLE, context.title.rsplit("/", 4), strict=False))
        user = self.isolation.user_of(context.place.workflow_id)
        theirs = {} if user is None else user.variables
        return self.allowed_environment | theirs | names | {"CALVE_ATTEMPT_KEY": context.key} | given

    def locate(self, text: str, what: str) -> Path:
        """Return the path of a file or folder of the project, or an absolute one.

        Raises:
            StepFailed: it is not there.
        """
        path = self.resolve(text, what)
        if not path.exists():
            raise fatal(f"{what} is not there: {text}. It was looked for at {path}.")
        return path

    def read(self, text: str, field: str, what: str, context: StepContext) -> str:
        """Return the text of a file of the project, with its references resolved as those of the definition.

        Raises:
            StepFailed: it is not there or cannot be read, or a reference in it has no value.
        """
        return resolved_file(self.locate(text, what), text, field, context)

    def resolve(self, text: str, what: str) -> Path:
        """Return the path that a text means, whether there is something or not.

        Raises:
            StepFailed: it cannot be a path.
        """
        if not text or "\0" in text:
            raise fatal(f"{what} cannot be a path: {text!r}.")
        return self.project / Path(text).expanduser()


def resolved_file(path: Path, given: str, field: str, context: StepContext) -> str:
    """Return the text of a file with its references resolved; messages call it as it was given.

    Raises:
        StepFailed: it cannot be read, or a reference in it has no value.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise fatal(f"{field} cannot be read: {error}") from None
    return context.resolve(FileText(text, given, field))
