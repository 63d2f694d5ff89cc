"""A real Keycloak and a real ``calve server`` for all tests of this folder, and a browser for each."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.keycloak.browsing import PASSWORD, Browser, browser_at
from tests.keycloak.server import ROOT, Keycloak, free_port, throwaway_keycloak

SECRET = "of the client"
_PAGE = ROOT / "docs" / "howto" / "secure-a-server.md"


@pytest.fixture(scope="session")
def port() -> int:
    """Return where calve will listen, which Keycloak has to know before."""
    return free_port()


@pytest.fixture(scope="session")
def keycloak(port: int) -> Iterator[Keycloak]:
    """Give a Keycloak whose realm knows calve."""
    given = {"CALVE_URL": f"http://127.0.0.1:{port}", "CLIENT_SECRET": SECRET, "PASSWORD": PASSWORD}
    with throwaway_keycloak(**given) as keycloak:
        yield keycloak


@pytest.fixture(scope="session")
def calve(keycloak: Keycloak, port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve calve, with the settings that the documentation says; give its address."""
    with calve_for(keycloak, port, tmp_path_factory.mktemp("calve")) as url:
        yield url


@pytest.fixture
def browser(calve: str) -> Iterator[Browser]:
    """Give a browser that has been nowhere yet."""
    with browser_at(calve) as browser:
        yield browser


@pytest.fixture
def newcomer(keycloak: Keycloak) -> Callable[..., str]:
    """Return a function that adds a new user to groups, and returns their name."""

    def added(*groups: str) -> str:
        name = f"user-{uuid.uuid4().hex}"
        keycloak.add_user(name, PASSWORD, *groups)
        return name

    return added


@contextmanager
def calve_for(keycloak: Keycloak, port: int, folder: Path) -> Iterator[str]:
    """Serve calve for people of a Keycloak, set up as the documentation says, until the block ends."""
    url = f"http://127.0.0.1:{port}"
    (folder / "calve.toml").write_text(documented(keycloak.url, url))
    command = [sys.executable, "-m", "calve", "-C", str(folder)]
    subprocess.run([*command, "secret", "set", "oidc_client_secret"], input=SECRET, text=True, check=True)
    environment = {**os.environ, "CALVE_ACCESS__REQUIRED": "true"}  # noqa: TID251 - handed on
    words = [*command, "server", "--port", str(port), "--json"]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["url"] == url
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()


def documented(keycloak: str, calve: str) -> str:
    """Return the settings that the documentation has for Keycloak, with addresses of this machine."""
    section = _PAGE.read_text(encoding="utf-8").partition("### With Keycloak")[2]
    found = re.search(r"^```toml\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{_PAGE} says no settings for Keycloak"
    return found[1].replace("https://login.example.com", keycloak).replace("https://calve.example.com", calve)
