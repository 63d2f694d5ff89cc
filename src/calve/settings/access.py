"""Access to the server, sign-in, and the sources of secrets."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from calve.settings.fields import Duration, Section, Words, from_json, is_range, words


class OidcSettings(Section):
    """An OpenID Connect provider at which people sign in."""

    issuer: str | None = None
    """The address of an OpenID Connect provider at which people sign in, exactly as the provider names itself."""
    client_id: str = "calve"
    """The name by which the provider knows calve."""
    client_secret: str | None = None
    """The name of the secret that the provider issued to calve, if it did."""
    redirect_url: str | None = None
    """Where the provider redirects people: ``https://HOST/api/v3/access/oidc/callback``."""
    scopes: Words = ("openid", "profile", "email", "groups")
    """The scopes that calve requests."""
    name_claim: str = "preferred_username"
    """The claim with the name that people see."""
    groups_claim: str = "groups"
    """The claim with the groups."""
    roles: Annotated[dict[str, str], BeforeValidator(from_json)] = Field(default_factory=dict)
    """The role of each group: ``runner``, or ``editor@sales`` for one namespace."""


_NAMESPACE = re.compile(r"\*|[\w-]+(?:\.[\w-]+)*")
_TABLES = re.compile(r"\*\*|[^.\s]+(?:\.[^.\s]+)+")
TablePatterns = Annotated[dict[str, Words], BeforeValidator(from_json)]
"""Patterns of tables by namespace; ``*`` is every namespace."""


class TableSettings(Section):
    """Which namespace may use which tables through calve."""

    policy: Literal["auto", "open", "closed"] = "auto"
    """Whether namespaces may use all tables (``open``) or only those granted by the keys below (``closed``); ``auto``:
    closed as soon as a user has a role in a single namespace."""
    read: TablePatterns = Field(default_factory=dict)
    """The tables that each namespace may look at."""
    capture: TablePatterns = Field(default_factory=dict)
    """The tables that each namespace may capture, and read."""
    write: TablePatterns = Field(default_factory=dict)
    """The tables that each namespace may deliver to."""

    @field_validator("read", "capture", "write")
    @classmethod
    def _are_patterns(cls, given: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for namespace, patterns in given.items():
            if not _NAMESPACE.fullmatch(namespace):
                raise ValueError(f"{namespace!r} is not a namespace; * is every namespace")
            for pattern in patterns:
                if not _TABLES.fullmatch(pattern):
                    raise ValueError(f"{pattern!r} is not a pattern of tables like db.*, catalog.db.orders or **")
        return given


class AccessSettings(Section):
    """Who may use the server, and under which host names."""

    required: bool = False
    """Whether users on this machine have to sign in too; others always have to."""
    hosts: Words = ()
    """The host names of the server, besides those of this machine if it listens there only."""
    trusted_proxies: Words = ()
    """The addresses or ranges of proxies whose headers name the client's address."""
    user_header: str | None = None
    """The header in which those proxies name the user; without it, they cannot."""
    plain_http: bool = False
    """Whether other machines may connect without TLS and without such a proxy."""
    session: Duration = timedelta(hours=12)
    """How long a session lasts."""
    requests_per_second: Annotated[int, Field(ge=1)] = 1_000
    """The maximum rate of requests from one address; bursts may have twice as many."""
    oidc: OidcSettings = OidcSettings()
    tables: TableSettings = TableSettings()

    @field_validator("trusted_proxies")
    @classmethod
    def _are_ranges(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            if not is_range(entry):
                raise ValueError(f"{entry!r} is not an address or an address range")
        return entries


class SecretStoreSettings(Section):
    """The sources of secrets."""

    backends: Annotated[tuple[Literal["env", "file", "table"], ...], BeforeValidator(words)] = ("env", "table")
    """Where secrets are looked for, in this order: ``env`` (the settings and the environment), ``file`` (a folder),
    ``table`` (encrypted, in the state database)."""
    folder: Path | None = None
    """The folder of ``file``, with a file for each secret. Default: ``<home>/secrets``."""
    key_file: Path
    """The file with the key of ``table``. Default: ``<home>/secret.key``."""
    key: str | None = Field(default=None, exclude=True, repr=False)
    """The key itself, instead of the file: 32 bytes in Base64. Set it by its variable."""
