"""What is kept of people, tokens and sessions, and of what they did. Times are milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calve.access.model import Grants


@dataclass(frozen=True, slots=True)
class User:
    """A person who may sign in."""

    name: str
    grants: Grants
    created_at: int
    shown: str = ""
    """The name as people read it, where it is another one."""
    password_hash: str | None = field(default=None, repr=False)
    """None: only a provider of identities can say that it is this person."""
    is_disabled: bool = False
    epoch: int = 0
    """Counts what ends all sessions: another password, being disabled."""


@dataclass(frozen=True, slots=True)
class Token:
    """What a program shows instead of a password; its text is known to its owner only."""

    token_id: str
    name: str
    digest: str = field(repr=False)
    grants: Grants
    created_at: int
    owner: str | None = None
    """The user whom it stands for: it can do no more than he, and dies with him. None: it stands for itself."""
    expires_at: int | None = None
    revoked_at: int | None = None
    used_at: int | None = None
    is_bootstrap: bool = False
    """It makes the first administrator, once, and opens nothing else."""

    def is_valid(self, now: int) -> bool:
        """Tell whether it opens anything at that time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Session:
    """A person who is signed in with a browser."""

    digest: str = field(repr=False)
    user: str
    epoch: int
    """That of the user when he signed in; it is over when he has another one."""
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Act:
    """Something that somebody did or tried, for the audit log."""

    at: int
    who: str
    """Kind and name: ``user:ann``."""
    action: str
    target: str
    source: str
    """From where: an address, or ``cli``."""
    result: str
    """``ok``, or why not: ``denied``, ``wrong``, ``locked``…"""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the audit log."""

    seq: int
    act: Act
    previous: str
    """The digest of the line before."""
    digest: str


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """A secret that only who has the key can read."""

    name: str
    sealed: str = field(repr=False)
    changed_at: int
    changed_by: str
