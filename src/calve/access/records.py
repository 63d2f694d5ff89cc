"""Records of users, tokens, sessions and actions. Times are milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calve.access.permissions import Grants


@dataclass(frozen=True, slots=True)
class User:
    """A person who can sign in."""

    name: str
    grants: Grants
    created_at: int
    shown: str = ""
    """The display name, if it differs."""
    password_hash: str | None = field(default=None, repr=False)
    """None: only an identity provider can authenticate this user."""
    is_disabled: bool = False
    epoch: int = 0
    """Changes whenever all sessions must end: a new password, disabling."""


@dataclass(frozen=True, slots=True)
class Token:
    """A program's credential; its text is known to its owner only."""

    token_id: str
    name: str
    digest: str = field(repr=False)
    grants: Grants
    created_at: int
    owner: str | None = None
    """The user it belongs to: it never has more permissions than they, and ends with them. None: its own roles."""
    expires_at: int | None = None
    revoked_at: int | None = None
    used_at: int | None = None
    is_bootstrap: bool = False
    """Whether the token creates the first administrator, once, and has no other use."""

    def is_valid(self, now: int) -> bool:
        """Tell whether the token is valid at a time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Session:
    """A browser session of a user."""

    digest: str = field(repr=False)
    user: str
    epoch: int
    """The user's epoch when they signed in; the session ends when it changes."""
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Act:
    """An action or an attempt, for the audit log."""

    at: int
    who: str
    """Kind and name: ``user:ann``."""
    action: str
    target: str
    source: str
    """An address, or ``cli``."""
    result: str
    """``ok``, or the reason of a refusal: ``denied``, ``wrong``, ``locked``…"""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A line of the audit log."""

    seq: int
    act: Act
    previous: str
    """The digest of the previous line."""
    digest: str


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """An encrypted secret."""

    name: str
    sealed: str = field(repr=False)
    changed_at: int
    changed_by: str
