"""What commands ask of workflows: of the engine of this project, or of a server that ``CALVE_URL`` names."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from calve.definition import Definition, JobTemplate
    from calve.engine import Address

Document = dict[str, Any]
"""What is known of something, in Maestro's shape: ``calve.engine.views`` makes them, and so does a server."""

Action = Literal["stop", "kill", "skip", "unblock", "bypass", "approve", "reject"]


@dataclass(frozen=True, slots=True)
class Again:
    """What a restart asks for."""

    is_from_beginning: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    step_params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    is_latest: bool = False
    """Continue with the newest version."""
    keep: tuple[str, ...] = ()
    """Steps whose results are kept though they changed."""


FOUND = 100
"""How many lines a search gives at most, unless it is said."""
PAGE = 65_536
"""How many bytes of a log are fetched at once."""


@dataclass(frozen=True, slots=True)
class Which:
    """Which part of a log is wanted; all of it, if nothing is said."""

    offset: int | None = None
    """The byte to begin at; below 0, from the end."""
    limit: int | None = None
    """How many bytes at most; of a search, how many lines."""
    tail: int | None = None
    """How many of the last lines."""


class Desk(Protocol):
    """Takes what one can ask of workflows."""

    def push(self, definition: "Definition") -> Document:
        """Keep a definition as the next version of its workflow."""
        ...

    def instances_kept(self) -> int | None:
        """Return how many seconds instances are kept after their end; None if for ever, or if nobody says."""
        ...

    def templates(self) -> "list[JobTemplate]":
        """Return the job templates that were pushed."""
        ...

    def delete(self, workflow: str) -> None:
        """Forget a workflow and everything that it has done."""
        ...

    def start(
        self, workflow: str, *, version: str | int, params: Mapping[str, Any], request_id: str | None
    ) -> Document:
        """Start an instance; return which one it is, and whether it was created by this."""
        ...

    def restart(self, place: "Address", again: Again) -> Document:
        """Run an instance again, or a step of it; return its run."""
        ...

    def plan_restart(self, place: "Address", again: Again) -> Document:
        """Return what a restart would keep and what it would run again."""
        ...

    def act(self, action: Action, place: "Address", **said: str) -> Document:
        """Do something with an instance or a step; return the instance that it is about."""
        ...

    def act_on_all(self, action: Literal["stop", "kill"], workflow: str, *, reason: str) -> list[Document]:
        """Stop or kill all instances of a workflow that are not over; return them."""
        ...

    def pause(self, workflow: str, step: str, instance: int | None) -> None:
        """Set a breakpoint."""
        ...

    def resume(self, workflow: str, step: str | None, place: "Address | None") -> list[Document]:
        """Take breakpoints away: of a workflow, a step, or one instance; return what goes on by that."""
        ...

    def activate(self, workflow: str, version: str) -> int | None:
        """Make a version the active one; return its number."""
        ...

    def deactivate(self, workflow: str) -> None:
        """Leave a workflow without an active version."""
        ...

    def announce(
        self, name: str, params: Mapping[str, Any], payload: Mapping[str, Any], request_id: str | None
    ) -> Document:
        """Announce a signal; return which one it is, and whether it is new."""
        ...

    def signals(self, name: str | None, limit: int) -> list[Document]:
        """Return signals, newest first."""
        ...

    def signal_lineage(self, name: str, seq: int | None) -> Document:
        """Return a signal, who sent it, and what it did; the latest, if none is named.

        Raises:
            SignalMissing: there is none.
        """
        ...

    def instances(self, workflow: str | None, *, statuses: Sequence[str] = (), limit: int = 1_000) -> list[Document]:
        """Return instances, newest first.

        Raises:
            WorkflowMissing: there is no such workflow.
        """
        ...

    def instance(self, place: "Address") -> Document:
        """Return an instance; its steps may be missing."""
        ...

    def overview(self, place: "Address") -> Document:
        """Return an instance with its steps."""
        ...

    def events(self, run: Document, after: int) -> list[Document]:
        """Return some events of a run in order, from the one after ``after``; nothing if there are no more now."""
        ...

    def told(self, run: Document, step_id: str, attempt_id: int) -> str:
        """Return what was said last about an attempt of a step."""
        ...

    def approvals(self, workflow: str | None, limit: int) -> list[Document]:
        """Return the Approval steps that wait for people, oldest first.

        Raises:
            WorkflowMissing: there is no such workflow.
        """
        ...

    def attempt(self, place: "Address", attempt_id: int | None) -> Document:
        """Return an attempt of a step, the newest if none is named.

        Raises:
            WorkflowMissing: there is none.
        """
        ...

    def find(self, place: "Address", attempt: Document, text: str, which: Which, *, ignore_case: bool) -> Document:
        """Return the lines of a log that hold a text: ``matches``, ``next_offset``, ``size``, ``left_out``."""
        ...

    def log(self, place: "Address", attempt: Document, which: Which, *, is_followed: bool) -> Iterator[str]:
        """Yield what an attempt has written; if followed, until it has ended."""
        ...

    def permits(self) -> list[Document]:
        """Return the limits of tags."""
        ...

    def limit_tag(self, tag: str, number: int | None) -> None:
        """Limit how many steps of a tag run at once, or lift the limit.

        Raises:
            RequestInvalid: the tag has no limit to be lifted.
        """
        ...

    def now(self) -> int:
        """Return the time, in milliseconds."""
        ...

    def is_worked(self) -> bool:
        """Tell whether anybody carries out what is started."""
        ...

    def view(self, run: Document) -> str | None:
        """Return the address of the page that shows an instance, if there is one."""
        ...
