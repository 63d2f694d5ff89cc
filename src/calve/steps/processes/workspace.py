"""The workspace of programs: the project's folder, environment variables, a Python and a Java."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calve.definition.params import FileText
from calve.engine import StepContext
from calve.steps.config import texts
from calve.steps.failures import fatal
from calve.steps.processes.isolation import Isolation, allowed

_TITLE = ("CALVE_WORKFLOW_ID", "CALVE_INSTANCE_ID", "CALVE_RUN_ID", "CALVE_STEP_ID", "CALVE_ATTEMPT_ID")


@dataclass(frozen=True, slots=True)
class Workspace:
    """The project and the machine, as programs see them."""

    project: Path
    """The folder that relative paths in a definition start from."""
    environment: Mapping[str, str]
    """The worker's environment variables."""
    python: str
    """The Python that calve runs on."""
    grace_seconds: float = 10.0
    """How many seconds a program may take to end after SIGTERM."""
    java_home: Path | None = None
    variables: tuple[str, ...] = ()
    """Further variables that programs inherit; ``*`` matches any text."""
    isolation: Isolation = field(default_factory=Isolation)

    @property
    def allowed_environment(self) -> dict[str, str]:
        """The variables that every program inherits from the worker."""
        return allowed(self.environment, self.variables)

    def environment_for(self, context: StepContext, more: Mapping[str, Any]) -> dict[str, str]:
        """Return the environment of an attempt's program: inherited variables, the attempt's names, and ``more``.

        Raises:
            StepFailed: the name or value of a variable is invalid.
        """
        given = texts(more)
        for name, value in given.items():
            if not name or "=" in name or "\0" in name + value:
                raise fatal(f"env: {name!r} is not a valid variable: its name is empty, or it contains = or NUL.")
        names = dict(zip(_TITLE, context.title.rsplit("/", 4), strict=False))
        user = self.isolation.user_of(context.place.workflow_id)
        theirs = {} if user is None else user.variables
        return self.allowed_environment | theirs | names | {"CALVE_ATTEMPT_KEY": context.key} | given

    def locate(self, text: str, what: str) -> Path:
        """Return the path of an existing file or folder, relative to the project unless it is absolute.

        Raises:
            StepFailed: it does not exist.
        """
        path = self.resolve(text, what)
        if not path.exists():
            raise fatal(f"{what} does not exist: {text} (looked for at {path}).")
        return path

    def read(self, text: str, field: str, what: str, context: StepContext) -> str:
        """Return the text of a file of the project, with its references resolved like those in the definition.

        Raises:
            StepFailed: it does not exist or cannot be read, or a reference in it has no value.
        """
        return resolved_file(self.locate(text, what), text, field, context)

    def resolve(self, text: str, what: str) -> Path:
        """Return the path of a text, whether it exists or not.

        Raises:
            StepFailed: it is not a valid path.
        """
        if not text or "\0" in text:
            raise fatal(f"{what} is not a valid path: {text!r}.")
        return self.project / Path(text).expanduser()


def resolved_file(path: Path, given: str, field: str, context: StepContext) -> str:
    """Return the text of a file with its references resolved; messages name it ``given``.

    Raises:
        StepFailed: it cannot be read, or a reference in it has no value.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise fatal(f"{field} cannot be read: {error}") from None
    return context.resolve(FileText(text, given, field))
