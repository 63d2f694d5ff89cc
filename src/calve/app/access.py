"""Access to a server: sign-in, accounts, identity provider; and the secrets of a project."""

import secrets
import time
from typing import TYPE_CHECKING

from calve.app.host import now_ms
from calve.errors import SettingsInvalid
from calve.settings import Settings
from calve.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from calve.access import Accounts, Backend, Provider, Secrets, TableSecrets
    from calve.api.access import AccessControl


def accounts_on(store: Store) -> "Accounts":
    """Return users, tokens and the audit log."""
    from calve.access import Accounts

    return Accounts(store.access, now_ms, secrets.token_bytes)


def access_control_on(store: Store, settings: Settings, host: str) -> "AccessControl":
    """Return the access control of a server that listens on an address.

    Raises:
        SettingsInvalid: other machines could reach the server, and the settings do not define how it is protected.
    """
    from calve.access import Authenticator, Rate
    from calve.api.access import AccessControl, rules

    access = settings.access
    life = int(access.session.total_seconds() * 1_000)
    return AccessControl(
        Authenticator(store.access, now_ms, secrets.token_bytes, life),
        accounts_on(store),
        rules(access, host),
        Rate(access.requests_per_second, time.monotonic),
        _provider(store, settings),
    )


def bootstrap_on(store: Store, settings: Settings, host: str) -> str | None:
    """Return a token that creates the first administrator; None if no sign-in is required, or users exist."""
    from calve.access import Actor, Principal, PrincipalKind
    from calve.api.access import rules

    if rules(settings.access, host).is_open:
        return None
    by = Actor(Principal("server", PrincipalKind.LOOPBACK), "server")
    return accounts_on(store).bootstrap_token(by, life=60 * 60_000)


def _provider(store: Store, settings: Settings) -> "Provider | None":
    from calve.access import OidcClient, Provider
    from calve.api.access import ProviderHttp

    given = settings.access.oidc
    if given.issuer is None:
        return None
    if given.redirect_url is None:
        raise SettingsInvalid(
            "access.oidc.redirect_url is not set.", remedy="Set it to https://HOST/api/v3/access/oidc/callback."
        )
    name, look_up = given.client_secret, secrets_on(store, settings)
    client = OidcClient(
        issuer=given.issuer,
        client_id=given.client_id,
        redirect_url=given.redirect_url,
        scopes=given.scopes,
        name_claim=given.name_claim,
        groups_claim=given.groups_claim,
        roles=given.roles,
        secret=None if name is None else lambda: look_up(name),
    )
    return Provider(client, ProviderHttp(), now_ms, secrets.token_bytes)


def secrets_on(store: Store, settings: Settings) -> "Secrets":
    """Return the secrets, looked up in the backends that the settings list."""
    from calve.access import FileSecrets, GivenSecrets, Secrets

    made: dict[str, Callable[[], Backend]] = {
        "env": lambda: GivenSecrets(settings.secrets),
        "file": lambda: FileSecrets(settings.secret_store.folder or settings.home / "secrets"),
        "table": lambda: secret_table_on(store, settings),
    }
    return Secrets([made[name]() for name in settings.secret_store.backends], settings.own_secrets)


def secret_table_on(store: Store, settings: Settings, *, makes_key: bool = False) -> "TableSecrets":
    """Return the encrypted table of secrets; with ``makes_key``, a missing key is created."""
    from calve.access import TableSecrets, make_key, parse_key, read_key

    given = settings.secret_store

    def key() -> bytes | None:
        if given.key is not None:
            return parse_key(given.key)
        found = read_key(given.key_file)
        return make_key(given.key_file, secrets.token_bytes) if found is None and makes_key else found

    return TableSecrets(store.access, key)
