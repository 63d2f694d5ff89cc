"""A Keycloak to throw away: fetched once by Maven, unpacked anew each time, gone when it is no longer needed."""

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests import maven

from calve.lake import java
from calve.settings import Settings, load

VERSION = "26.4.7"
SHA512 = (
    "f9d4e0ced49976932e173abc8d2f6ff4169c125fe3b14e69ebaa0ccc4dea822e"
    "879f7ec7353d28fa40c13de0113059c6888833725378ecef4d27587e0c87a6a2"
)
"""Of the archive: whatever else a registry serves under that name is not run."""
REALM = "calve"
ROOT = Path(__file__).parents[2]
_ARCHIVE = f"keycloak-quarkus-dist-{VERSION}.zip"
_ARTIFACT = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
_CACHE = ROOT / ".cache" / "keycloak"
_IMPORTED = Path(__file__).with_name("realm.json")
_ADMIN = {"username": "admin", "password": "of a throw-away Keycloak"}
_START, _STOP = 300, 60


@dataclass
class Keycloak:
    """A running Keycloak, and its administration."""

    home: Path
    port: int
    environment: Mapping[str, str] = field(repr=False)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address: another site than calve's for a browser, which knows sites by their names."""
        return f"http://localhost:{self.port}"

    @property
    def issuer(self) -> str:
        """How its realm names itself."""
        return f"{self.url}/realms/{REALM}"

    def start(self) -> None:
        """Start it, and wait until its realm answers."""
        words = [
            *("bash", str(self.home / "bin" / "kc.sh"), "start-dev", "--import-realm", "--cache=local"),
            *("--http-host=127.0.0.1", f"--http-port={self.port}"),
        ]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                words, env=dict(self.environment), stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + _START
        while not self._answers():
            assert self.process.poll() is None, f"Keycloak has ended: {self._log.read_text()}"
            assert time.monotonic() < until, f"Keycloak does not answer: {self._log.read_text()}"
            time.sleep(0.2)

    def stop(self) -> None:
        """End it with all that it has started; what it keeps stays until the folder is removed."""
        if self.process is None:
            return
        os.killpg(self.process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_STOP)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """Ask its administration for something of the realm."""
        form = {"grant_type": "password", "client_id": "admin-cli", **_ADMIN}
        token = httpx.post(f"{self.url}/realms/master/protocol/openid-connect/token", data=form, timeout=60)
        headers = {"authorization": f"Bearer {token.raise_for_status().json()['access_token']}"}
        url = f"{self.url}/admin/realms/{REALM}{path}"
        answer = httpx.request(method, url, headers=headers, timeout=60, **options).raise_for_status()
        return answer.json() if answer.content else None

    def add_user(self, name: str, password: str, *groups: str) -> None:
        """Add a user; groups are named by their full paths."""
        person = {"email": f"{name}@example.com", "firstName": name, "lastName": "Test", "enabled": True}
        known_by = [{"type": "password", "value": password, "temporary": False}]
        self.ask("POST", "/users", json=person | {"username": name, "credentials": known_by, "groups": list(groups)})

    def user(self, name: str) -> dict[str, Any]:
        """Return the record of a user."""
        (found,) = self.ask("GET", "/users", params={"username": name, "exact": "true"})
        return dict(found)

    def change_user(self, name: str, **changed: Any) -> None:
        """Change the record of a user."""
        known = self.user(name)
        self.ask("PUT", f"/users/{known['id']}", json=known | changed)

    def join(self, name: str, path: str, *, leaves: bool = False) -> None:
        """Add a user to a group, or remove them."""
        group = self.ask("GET", f"/group-by-path{path}")
        self.ask("DELETE" if leaves else "PUT", f"/users/{self.user(name)['id']}/groups/{group['id']}")

    @contextmanager
    def client_with(self, *, secret: str | None = None, **attributes: str) -> Iterator[None]:
        """Know calve by another secret or other attributes (with dots for underscores) until the block ends."""
        (client,) = self.ask("GET", "/clients", params={"clientId": "calve"})
        more = {name.replace("_", "."): text for name, text in attributes.items()}
        changed = {"secret": secret or client["secret"], "attributes": client["attributes"] | more}
        self.ask("PUT", f"/clients/{client['id']}", json=client | changed)
        try:
            yield
        finally:
            cleared = {"attributes": dict.fromkeys(more, "") | client["attributes"]}
            self.ask("PUT", f"/clients/{client['id']}", json=client | cleared)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Take connections and answer nothing until the block ends."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.process.pid, signal.SIGCONT)

    def signing_keys(self) -> set[str]:
        """Return the names of the keys that it signs with as a rule; for other algorithms it makes more."""
        keys = httpx.get(f"{self.issuer}/protocol/openid-connect/certs", timeout=60).json()["keys"]
        return {key["kid"] for key in keys if key["alg"] == "RS256"}

    def rotate_keys(self) -> None:
        """Sign with a new key from now on, and drop the old ones."""
        components = {"type": "org.keycloak.keys.KeyProvider"}
        old = [one for one in self.ask("GET", "/components", params=components) if one["providerId"] == "rsa-generated"]
        made = {"providerType": components["type"], "providerId": "rsa-generated", "parentId": old[0]["parentId"]}
        highest = 1 + max(int(one["config"]["priority"][0]) for one in old)
        self.ask("POST", "/components", json=made | {"name": "new", "config": {"priority": [str(highest)]}})
        for one in old:
            self.ask("DELETE", f"/components/{one['id']}")

    @property
    def _log(self) -> Path:
        return self.home / "log"

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.issuer}/.well-known/openid-configuration", timeout=5).is_success
        except httpx.HTTPError:
            return False


@contextmanager
def throwaway_keycloak(**placeholders: str) -> Iterator[Keycloak]:
    """Start a Keycloak with the realm of this folder, and remove it in the end.

    Args:
        placeholders: what stands in the realm for ``${NAME}``.
    """
    settings = load(ROOT)
    archive = _fetched(settings)
    folder = Path(tempfile.mkdtemp(prefix="calve-keycloak-"))
    keycloak = Keycloak(folder / f"keycloak-{VERSION}", free_port(), _environment(settings) | placeholders)
    try:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
        imported = keycloak.home / "data" / "import"
        imported.mkdir(parents=True)
        shutil.copy(_IMPORTED, imported)
        keycloak.start()
        yield keycloak
    finally:
        keycloak.stop()
        shutil.rmtree(folder)


def free_port() -> int:
    """Return a port of this machine on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _environment(settings: Settings) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("KC_")}  # noqa: TID251 - handed on
    return inherited | {
        "JAVA_HOME": str(java.find(settings.spark.java_home).home),
        "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx512m",
        "KC_BOOTSTRAP_ADMIN_USERNAME": _ADMIN["username"],
        "KC_BOOTSTRAP_ADMIN_PASSWORD": _ADMIN["password"],
    }


def _fetched(settings: Settings) -> Path:
    """Return the archive; it is checked each time, and kept only if it is the one that we know."""
    kept = _CACHE / _ARCHIVE
    if not kept.is_file():
        _CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
            words = [*maven.command(settings, Path(folder)), "--quiet", "--batch-mode", "dependency:copy"]
            words += [f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={folder}"]
            said = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            assert said.returncode == 0, said.stdout + said.stderr
            _check(Path(folder) / _ARCHIVE)
            (Path(folder) / _ARCHIVE).rename(kept)
    _check(kept)
    return kept


def _check(archive: Path) -> None:
    with archive.open("rb") as content:
        found = hashlib.file_digest(content, "sha512").hexdigest()
    assert found == SHA512, f"{archive} is not Keycloak {VERSION}: its SHA-512 is {found}. Remove it."
