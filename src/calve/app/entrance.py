"""The entrance of a server: who may come in, and how they show who they are."""

import secrets
import time
from typing import TYPE_CHECKING

from calve.app.clocks import now_ms
from calve.app.secret_store import secrets_on
from calve.errors import SettingsInvalid
from calve.settings import Settings
from calve.store import Store

if TYPE_CHECKING:
    from calve.access import Office
    from calve.access.oidc import Provider
    from calve.api.access import Entrance


def office_on(store: Store) -> "Office":
    """Return what keeps users and tokens."""
    from calve.access import Office

    return Office(store.access, now_ms, secrets.token_bytes)


def entrance_on(store: Store, settings: Settings, host: str) -> "Entrance":
    """Return what guards a server that listens on an address.

    Raises:
        SettingsInvalid: others could reach it, and the settings do not say how it is protected.
    """
    from calve.access import Door, Rate
    from calve.api.access import Entrance, rules

    access = settings.access
    life = int(access.session.total_seconds() * 1_000)
    return Entrance(
        Door(store.access, now_ms, secrets.token_bytes, life),
        office_on(store),
        rules(access, host),
        Rate(access.requests_per_second, time.monotonic),
        _provider(store, settings),
    )


def bootstrap_on(store: Store, settings: Settings, host: str) -> str | None:
    """Return a token that makes the first administrator, to be shown once; None if nobody has to sign in, or can."""
    from calve.access import By, Principal, PrincipalKind
    from calve.api.access import rules

    if rules(settings.access, host).is_open:
        return None
    by = By(Principal("server", PrincipalKind.LOOPBACK), "server")
    return office_on(store).bootstrap_token(by, life=60 * 60_000)


def _provider(store: Store, settings: Settings) -> "Provider | None":
    from calve.access.oidc import Client, Provider
    from calve.api.access import ProviderHttp

    given = settings.access.oidc
    if given.issuer is None:
        return None
    if given.redirect_url is None:
        raise SettingsInvalid(
            "access.oidc.redirect_url is not set.", remedy="Set it to https://HOST/api/v3/access/oidc/callback."
        )
    name, look_up = given.client_secret, secrets_on(store, settings)
    client = Client(
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
