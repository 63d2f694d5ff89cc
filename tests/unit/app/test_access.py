"""How access is put together from the settings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from calve.app import access_control_on, accounts_on, bootstrap_on
from calve.errors import SettingsInvalid, Unauthenticated
from calve.settings import Settings, load
from calve.store import Store, open_store

ANYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens
OUTSIDE = {"CALVE_ACCESS__HOSTS": "calve.example.com", "CALVE_ACCESS__TRUSTED_PROXIES": "10.0.0.5"}
PASSWORD = "correct horse battery"


def _settings(folder: Path, **environ: str) -> Settings:
    return load(folder, environ)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give an open store."""
    with open_store(f"sqlite:///{tmp_path}/state.db") as store:
        yield store


def test_a_server_that_others_reach_needs_settings(store: Store, tmp_path: Path) -> None:
    """Without them it is not made."""
    assert access_control_on(store, _settings(tmp_path), "127.0.0.1").rules.is_open
    with pytest.raises(SettingsInvalid, match="access"):
        access_control_on(store, _settings(tmp_path), ANYWHERE)
    entrance = access_control_on(store, _settings(tmp_path, **OUTSIDE), ANYWHERE)
    assert not entrance.rules.is_open
    assert entrance.provider is None


def test_a_provider_needs_an_address_to_come_back_to(store: Store, tmp_path: Path) -> None:
    """Its secret is fetched when someone signs in."""
    issuer = {"CALVE_ACCESS__OIDC__ISSUER": "https://login.example.com"}
    with pytest.raises(SettingsInvalid, match="redirect_url"):
        access_control_on(store, _settings(tmp_path, **issuer), "127.0.0.1")
    more = {
        "CALVE_ACCESS__OIDC__REDIRECT_URL": "https://calve.example.com/api/v3/access/oidc/callback",
        "CALVE_ACCESS__OIDC__CLIENT_SECRET": "not_set_yet",
    }
    assert access_control_on(store, _settings(tmp_path, **issuer, **more), "127.0.0.1").provider is not None


def test_the_first_administrator_is_made_with_a_token_of_the_server(store: Store, tmp_path: Path) -> None:
    """Where nobody has to sign in there is none, nor where someone can already."""
    assert bootstrap_on(store, _settings(tmp_path), "127.0.0.1") is None
    outside = _settings(tmp_path, **OUTSIDE)
    token = bootstrap_on(store, outside, ANYWHERE)
    assert token is not None
    office = accounts_on(store)
    office.bootstrap(token, "root", PASSWORD, "192.0.2.1")
    with pytest.raises(Unauthenticated):
        office.bootstrap(token, "other", PASSWORD, "192.0.2.1")
    assert bootstrap_on(store, outside, ANYWHERE) is None
