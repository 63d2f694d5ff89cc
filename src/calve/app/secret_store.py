"""Secrets: the places that their texts are looked for in."""

import secrets
from typing import TYPE_CHECKING

from calve.settings import Settings
from calve.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from calve.access.secrets import Backend, Secrets, TableSecrets


def secrets_on(store: Store, settings: Settings) -> "Secrets":
    """Return what looks for secrets, in the places and the order that the settings say."""
    from calve.access.secrets import FileSecrets, GivenSecrets, Secrets

    made: dict[str, Callable[[], Backend]] = {
        "env": lambda: GivenSecrets(settings.secrets),
        "file": lambda: FileSecrets(settings.secret_store.folder or settings.home / "secrets"),
        "table": lambda: secret_table_on(store, settings),
    }
    return Secrets([made[name]() for name in settings.secret_store.backends], settings.own_secrets)


def secret_table_on(store: Store, settings: Settings, *, makes_key: bool = False) -> "TableSecrets":
    """Return the encrypted table of secrets; its key may be made where there is none."""
    from calve.access.secrets import TableSecrets, make_key, parse_key, read_key

    given = settings.secret_store

    def key() -> bytes | None:
        if given.key is not None:
            return parse_key(given.key)
        found = read_key(given.key_file)
        return make_key(given.key_file, secrets.token_bytes) if found is None and makes_key else found

    return TableSecrets(store.access, key)
