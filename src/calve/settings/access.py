"""Who may use the server, how they sign in, and where secrets lie."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from calve.settings.fields import Duration, Section, Words, from_json, is_range, words


class OidcSettings(Section):
    """Where people sign in, if not here: a provider of OpenID Connect."""

    issuer: str | None = None
    """Its address, as it names itself."""
    client_id: str = "calve"
    client_secret: str | None = None
    """The name of the secret that the provider gave to calve, if it did."""
    redirect_url: str | None = None
    """Where the provider sends people back to: ``https://HOST/api/v3/access/oidc/callback``."""
    scopes: Words = ("openid", "profile", "email", "groups")
    name_claim: str = "preferred_username"
    """What the name is taken from that people see."""
    groups_claim: str = "groups"
    roles: Annotated[dict[str, str], BeforeValidator(from_json)] = Field(default_factory=dict)
    """What each group may do: ``runner``, or ``editor@sales`` for one namespace."""


_NAMESPACE = re.compile(r"\*|[\w-]+(?:\.[\w-]+)*")
_TABLES = re.compile(r"\*\*|[^.\s]+(?:\.[^.\s]+)+")
TablePatterns = Annotated[dict[str, Words], BeforeValidator(from_json)]
"""Patterns of tables by namespace; ``*`` is every namespace."""


class TableSettings(Section):
    """Which namespace may use which tables through calve."""

    policy: Literal["auto", "open", "closed"] = "auto"
    """Whether a namespace may use all tables, or those below; auto: those, once somebody has a role in a namespace."""
    read: TablePatterns = Field(default_factory=dict)
    capture: TablePatterns = Field(default_factory=dict)
    write: TablePatterns = Field(default_factory=dict)

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
    """Who may use the server, and under which names."""

    required: bool = False
    """Whether somebody at this machine has to sign in too; others have to in any case."""
    hosts: Words = ()
    """The names under which the server is reached; besides those of this machine, if it listens there only."""
    trusted_proxies: Words = ()
    """The addresses of proxies that say from where a request has come."""
    user_header: str | None = None
    """The header in which those proxies say who it is; without it, they cannot."""
    plain_http: bool = False
    """Whether others may come without TLS."""
    session: Duration = timedelta(hours=12)
    """How long somebody stays signed in."""
    requests_per_second: Annotated[int, Field(ge=1)] = 1_000
    """How often one address may ask."""
    oidc: OidcSettings = OidcSettings()
    tables: TableSettings = TableSettings()

    @field_validator("trusted_proxies")
    @classmethod
    def _are_ranges(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            if not is_range(entry):
                raise ValueError(f"{entry!r} is neither an address nor a range of addresses")
        return entries


class SecretStoreSettings(Section):
    """Where the texts of secrets are looked for."""

    backends: Annotated[tuple[Literal["env", "file", "table"], ...], BeforeValidator(words)] = ("env", "table")
    """In this order: the settings and the environment, a folder of files, the encrypted table."""
    folder: Path | None = None
    """The folder that holds a file for each secret."""
    key_file: Path
    """The file that holds the key of the encrypted table."""
    key: str | None = Field(default=None, exclude=True, repr=False)
    """The key itself, instead of the file; given by the environment."""
