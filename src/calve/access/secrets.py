"""The sources of secrets: the environment, files, an encrypted table. Only workers read them."""

import binascii
import os
import re
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from calve.access.accounts import Actor
from calve.access.authentication import who
from calve.access.credentials import RandomBytes
from calve.access.ports import SecretState
from calve.access.records import Act, SealedSecret
from calve.errors import ParamError, RequestInvalid, SettingsInvalid
from calve.folders import writing
from calve.namespaces import is_for, namespace_of

KEY_BYTES = 32
NONCE_BYTES = 12
LONGEST = 65_536
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_VERSION = "v1:"


class Backend(Protocol):
    """A source of secrets."""

    def find(self, name: str) -> str | None:
        """Return the text of a secret; None if it is not in this source."""
        ...


@dataclass(frozen=True, slots=True)
class GivenSecrets:
    """Secrets from the settings, as the environment sets them."""

    texts: Mapping[str, str] = field(repr=False)

    def find(self, name: str) -> str | None:
        """Return the text of a secret; None if it is not in this source."""
        return self.texts.get(name)


@dataclass(frozen=True, slots=True)
class FileSecrets:
    """A folder with a file for each secret, readable only by its owner, as Docker and Kubernetes mount secrets."""

    folder: Path

    def find(self, name: str) -> str | None:
        """Return the text of a secret, without a trailing newline; None if it is not in this source.

        Raises:
            ParamError: other users can read it, or it is not text.
        """
        file = self.folder / name
        if not _NAME.fullmatch(name) or not file.is_file():
            return None
        # A link would let the writer of the folder read any file of this process.
        if not file.resolve().is_relative_to(self.folder.resolve()):
            raise ParamError(f"The file of the secret [{name}] is outside its folder.")
        # Mode and content from one open file: a path could be replaced between two calls.
        with file.open("rb") as opened:
            _check_mode(opened.fileno(), f"The file of the secret [{name}]")
            content = opened.read(LONGEST + 1)
        try:
            return _checked(name, content.decode()).removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise ParamError(f"The file of the secret [{name}] is not UTF-8.") from None


@dataclass(frozen=True, slots=True)
class TableSecrets:
    """The encrypted table of the state database; its key is stored elsewhere."""

    state: SecretState
    key: Callable[[], bytes | None] = field(repr=False)

    def find(self, name: str) -> str | None:
        """Return the text of a secret; None if it is not in this source.

        Raises:
            ParamError: it exists, but the key is missing or wrong.
        """
        found = self.state.secret(name) if _NAME.fullmatch(name) else None
        return None if found is None else opened(found, self._key())

    def put(self, name: str, text: str, by: Actor, at: int, random: RandomBytes) -> None:
        """Store a secret, replacing an older one of its name.

        Raises:
            RequestInvalid: the name is invalid, or the text is too long.
            ParamError: there is no key.
        """
        if not _NAME.fullmatch(name):
            raise RequestInvalid(
                f"{name!r} is not a valid name for a secret.", remedy="Use letters, digits, _ . and -."
            )
        if not text:
            raise RequestInvalid("The text of a secret is required.")
        secret = SealedSecret(name, sealed(name, _checked(name, text), self._key(), random), at, who(by.principal))
        self.state.put_secret(secret, by.act(at, "set_secret", f"secret:{name}"))

    def delete(self, name: str, by: Actor, at: int) -> None:
        """Delete a secret.

        Raises:
            RequestInvalid: it does not exist.
        """
        act: Act = by.act(at, "delete_secret", f"secret:{name}")
        if not self.state.delete_secret(name, act):
            raise RequestInvalid(
                f"There is no secret {name} in the table.", remedy="List the secrets with: calve secret list"
            )

    def _key(self) -> bytes:
        key = self.key()
        if key is None:
            raise ParamError(
                "The key of the secrets table is missing.", remedy="Set secret_store.key_file, or secret_store.key."
            )
        return key


@dataclass(frozen=True, slots=True)
class Secrets:
    """Looks up secrets in one source after the other.

    A secret belongs to a namespace, as a workflow does: what is before the last dot of its name.
    """

    backends: Sequence[Backend]
    own: AbstractSet[str] = frozenset()
    """Names of secrets that calve itself uses, and gives to no step."""

    def for_step(self, workflow_id: str, name: str) -> str:
        """Return the text of a secret for a step of a workflow.

        Raises:
            ParamError: the workflow has no secret of that name, or it cannot be read.
        """
        if name in self.own:
            raise ParamError(
                f"The secret [{name}] is reserved for calve, and not available to steps.",
                remedy="Use a secret with another name.",
            )
        if not is_for(name, workflow_id):
            raise ParamError(
                f"The secret [{name}] is for workflows of the namespace {namespace_of(name)}; "
                f"{workflow_id} is not one of them.",
                remedy="Only workflows below a.b can use a secret a.b.NAME; all can use one without a dot in its name.",
            )
        return self(name)

    def __call__(self, name: str) -> str:
        """Return the text of a secret for calve itself.

        Raises:
            ParamError: it does not exist, or cannot be read.
        """
        for backend in self.backends:
            text = backend.find(name)
            if text is not None:
                return text
        raise ParamError(
            f"The secret [{name}] does not exist.",
            remedy=f"calve secret set {name}, or set CALVE_SECRETS__{name.upper().replace('.', '__')} for the worker.",
        )


def sealed(name: str, text: str, key: bytes, random: RandomBytes) -> str:
    """Encrypt a text; the ciphertext is valid only under that name."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = random(NONCE_BYTES)
    # The name is authenticated: a row that is copied to another name cannot be decrypted.
    closed = AESGCM(key).encrypt(nonce, text.encode(), name.encode())
    return _VERSION + urlsafe_b64encode(nonce + closed).decode()


def opened(secret: SealedSecret, key: bytes) -> str:
    """Decrypt a secret.

    Raises:
        ParamError: it was encrypted with another key or under another name, or was changed.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        closed = urlsafe_b64decode(secret.sealed.removeprefix(_VERSION))
        return AESGCM(key).decrypt(closed[:NONCE_BYTES], closed[NONCE_BYTES:], secret.name.encode()).decode()
    except (InvalidTag, ValueError):
        raise ParamError(
            f"The secret [{secret.name}] cannot be decrypted with this key.",
            remedy=f"Use the key that it was set with, or set it again: calve secret set {secret.name}",
        ) from None


def parse_key(text: str) -> bytes:
    """Parse the text of a key.

    Raises:
        SettingsInvalid: it is not a key.
    """
    try:
        key = urlsafe_b64decode(text.strip().encode())
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise SettingsInvalid(
            f"The key of the secrets table is not {KEY_BYTES} bytes in Base64.",
            remedy="Use the key that the secrets were set with. If there is no key file, "
            "`calve secret set NAME` creates one.",
        )
    return key


def read_key(file: Path) -> bytes | None:
    """Return the key from a file that only its owner can read; None if the file does not exist.

    Raises:
        ParamError: other users can read it.
        SettingsInvalid: it does not contain a key.
    """
    try:
        with file.open("rb") as opened_file:
            _check_mode(opened_file.fileno(), str(file))
            return parse_key(opened_file.read(1_000).decode("ascii", "replace"))
    except FileNotFoundError:
        return None


def make_key(file: Path, random: RandomBytes) -> bytes:
    """Create a key in a file that only its owner can read; if another process created one first, use that."""
    key = random(KEY_BYTES)
    with writing("The key of the secrets table", file, "secret_store.key_file"):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            # O_EXCL: of two processes that start together only one creates the key, or secrets of the other would be
            # lost.
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return read_key(file) or key
    with os.fdopen(descriptor, "wb") as new:
        new.write(urlsafe_b64encode(key) + b"\n")
    return key


def _check_mode(descriptor: int, what: str) -> None:
    status = os.fstat(descriptor)
    if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid not in {os.getuid(), 0}:
        raise ParamError(
            f"{what} is readable by other users.",
            remedy="Set its mode to 600, and its owner to the user that runs calve.",
        )


def _checked(name: str, text: str) -> str:
    if len(text) > LONGEST or "\0" in text:
        raise RequestInvalid(f"The text of the secret [{name}] is longer than {LONGEST} characters, or contains a NUL.")
    return text
