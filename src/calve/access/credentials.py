"""What is shown to be let in: random texts, of which only digests are kept, and passwords."""

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
"""Gives so many bytes that nobody can guess."""


def new_text(random: RandomBytes) -> str:
    """Return a new token: a prefix that scanners for leaked secrets know, and 256 random bits."""
    return PREFIX + urlsafe_b64encode(random(BYTES)).decode().rstrip("=")


def digest(text: str) -> str:
    """Return what is kept of a token. It is random, so that a fast digest is enough."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_same(left: str, right: str) -> bool:
    """Compare two texts in a time that tells nothing about them."""
    return hmac.compare_digest(left.encode(), right.encode())


def csrf_of(session: str) -> str:
    """Return what a page of a session sends along with each change; who has not read such a page cannot know it."""
    return hmac.new(session.encode(), b"calve csrf", hashlib.sha256).hexdigest()


def new_device(password_hash: str, random: RandomBytes) -> str:
    """Return what a browser keeps that has signed in, to be told from strangers; it ends with the password.

    Nobody else can make it: the hash of the password is known to the database only.
    """
    number = random(16).hex()
    return f"{number}.{_mark(password_hash, number)}"


def device_in(text: str | None, password_hash: str | None) -> str | None:
    """Return the number of the device that a text stands for; None if it has not signed in with that password."""
    number, _, mark = (text or "").partition(".")
    return number if password_hash and is_same(mark, _mark(password_hash, number)) else None


def _mark(password_hash: str, number: str) -> str:
    return hmac.new(password_hash.encode(), f"device {number}".encode(), hashlib.sha256).hexdigest()


def hashed(password: str, *, user: str) -> str:
    """Return what is kept of a password.

    Raises:
        RequestInvalid: it is too easy to guess.
    """
    if len(password) < SHORTEST or len(password) > LONGEST:
        raise RequestInvalid(f"A password has {SHORTEST} to {LONGEST} characters.")
    if user.casefold() in password.casefold() or len(set(password)) == 1:
        raise RequestInvalid("The password is too easy to guess.", remedy="Use one without the name of the user.")
    return _hasher().hash(password)


def matches(kept: str | None, password: str) -> bool:
    """Tell whether it is that password; where there is none, it takes as long as if there were one."""
    from argon2.exceptions import InvalidHashError, VerifyMismatchError

    try:
        return _hasher().verify(kept or _NOBODY, password[:LONGEST]) and kept is not None
    except (VerifyMismatchError, InvalidHashError):
        return False


def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher  # takes a while to load, and few commands need it

    return PasswordHasher()


_NOBODY = "$argon2id$v=19$m=65536,t=3,p=4$Y2FsdmUtbm9ib2R5LXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
"""Costs as much as any other, and no password fits."""
