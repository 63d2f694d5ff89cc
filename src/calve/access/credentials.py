"""Credentials: random tokens, of which only digests are stored, and passwords."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING

from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from argon2 import PasswordHasher

PREFIX = "calve_"
BYTES = 32
SHORTEST = 10
LONGEST = 1_024

RandomBytes = Callable[[int], bytes]
"""Returns a number of unpredictable bytes."""


def new_text(random: RandomBytes) -> str:
    """Return a new token: a prefix for secret scanners, and 256 random bits."""
    return PREFIX + urlsafe_b64encode(random(BYTES)).decode().rstrip("=")


def digest(text: str) -> str:
    """Return the stored form of a token. It is random, so a fast digest is enough."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_same(left: str, right: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())


def csrf_of(session: str) -> str:
    """Return the CSRF token of a session, which a page sends with each change; other sites cannot read it."""
    return hmac.new(session.encode(), b"calve csrf", hashlib.sha256).hexdigest()


def new_device(password_hash: str, random: RandomBytes) -> str:
    """Return a cookie that identifies a browser that has signed in; a new password invalidates it.

    It cannot be forged, because only the database has the hash of the password.
    """
    number = random(16).hex()
    return f"{number}.{_mark(password_hash, number)}"


def device_in(text: str | None, password_hash: str | None) -> str | None:
    """Return the number of a device cookie; None if it is not valid for that password."""
    number, _, mark = (text or "").partition(".")
    return number if password_hash and is_same(mark, _mark(password_hash, number)) else None


def _mark(password_hash: str, number: str) -> str:
    return hmac.new(password_hash.encode(), f"device {number}".encode(), hashlib.sha256).hexdigest()


def hashed(password: str, *, user: str) -> str:
    """Return the stored form of a password.

    Raises:
        RequestInvalid: it is too easy to guess.
    """
    if len(password) < SHORTEST or len(password) > LONGEST:
        raise RequestInvalid(f"A password must have {SHORTEST} to {LONGEST} characters.")
    if user.casefold() in password.casefold() or len(set(password)) == 1:
        raise RequestInvalid(
            "The password is too easy to guess.", remedy="Use one that does not contain the user name."
        )
    return _hasher().hash(password)


def matches(kept: str | None, password: str) -> bool:
    """Check a password; without a stored one, this takes as long as if there were one."""
    from argon2.exceptions import InvalidHashError, VerifyMismatchError

    try:
        return _hasher().verify(kept or _NOBODY, password[:LONGEST]) and kept is not None
    except (VerifyMismatchError, InvalidHashError):
        return False


def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher  # takes a while to load, and few commands need it

    return PasswordHasher()


_NOBODY = "$argon2id$v=19$m=65536,t=3,p=4$Y2FsdmUtbm9ib2R5LXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
"""As expensive as any other hash, and no password matches it."""
