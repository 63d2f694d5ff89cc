"""What calve is made of: locked with hashes, listed, and looked up among known vulnerabilities."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = [ROOT / "requirements.lock", ROOT / "deploy" / "requirements.lock", ROOT / "deploy" / "build.lock"]


def _pins(lock: Path) -> dict[str, set[str]]:
    """Return the hashes of each pinned package."""
    found: dict[str, set[str]] = {}
    pin = ""
    for line in lock.read_text().splitlines():
        if re.match("[a-z0-9]", line):
            pin = line.removesuffix(" \\").partition(" ;")[0]
            found[pin] = set()
        elif "--hash=" in line:
            found[pin].add(line.strip().removesuffix(" \\"))
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_pin_has_hashes(lock: Path) -> None:
    """And a version, so that what is installed was seen before."""
    pins = _pins(lock)
    assert pins
    assert all("==" in pin and hashes for pin, hashes in pins.items())


@pytest.mark.parametrize("lock", LOCKS[1:], ids=lambda path: path.name)
def test_the_image_is_made_of_what_is_tested(lock: Path) -> None:
    """Its locks are parts of the one that tests run with: the same versions, the same files."""
    whole = _pins(LOCKS[0])
    assert {pin: hashes for pin, hashes in _pins(lock).items() if whole.get(pin) != hashes} == {}


def _sbom(path: Path) -> dict[str, Any]:
    subprocess.run([sys.executable, str(ROOT / "scripts" / "sbom.py"), str(path)], check=True, capture_output=True)
    return dict(json.loads(path.read_text()))


def test_the_bill_of_materials_holds_every_pin(tmp_path: Path) -> None:
    """With hashes, and whether it is needed to run calve; it is the same each time."""
    bill = _sbom(tmp_path / "one.json")
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    pins = _pins(LOCKS[0])
    assert {f"{one['name']}=={one['version']}" for one in bill["components"]} == set(pins)
    for one in bill["components"]:
        assert one["purl"] == f"pkg:pypi/{one['name']}@{one['version']}"
        hashes = {f"--hash=sha256:{each['content']}" for each in one["hashes"]}
        assert hashes == pins[f"{one['name']}=={one['version']}"]
    required = {f"{one['name']}=={one['version']}" for one in bill["components"] if one["scope"] == "required"}
    assert required == set(_pins(LOCKS[1]))
    assert bill == _sbom(tmp_path / "two.json")


@contextmanager
def _advisories(answer: Any) -> Iterator[str]:
    """Serve a database of vulnerabilities; ``answer`` makes of each question an answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["queries"]
            body = json.dumps(answer(asked)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def _audit(service: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / "scripts" / "audit.py"), service]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_known_vulnerabilities_are_reported() -> None:
    """By package; then the audit fails."""

    def answer(asked: list[Any]) -> Any:
        return {
            "results": [{"vulns": [{"id": "GHSA-1"}]} if one["package"]["name"] == "pyyaml" else {} for one in asked]
        }

    with _advisories(answer) as service:
        found = _audit(service)
    assert found.returncode == 1
    assert re.search(r"^pkg:pypi/pyyaml@\S+: GHSA-1$", found.stdout, re.MULTILINE)


def test_an_audit_without_findings_succeeds() -> None:
    """And says how much it looked at."""
    with _advisories(lambda asked: {"results": [{} for _ in asked]}) as service:
        found = _audit(service)
    assert found.returncode == 0
    assert f"{len(_pins(LOCKS[0]))} packages, 0 with known vulnerabilities." in found.stdout


def test_an_audit_that_could_not_ask_does_not_succeed() -> None:
    """Whether nobody answers, or not what was asked."""
    nobody = _audit("http://127.0.0.1:9")
    with _advisories(lambda _: {"results": []}) as service:
        silent = _audit(service)
    with _advisories(lambda _: []) as service:
        odd = _audit(service)
    for found in (nobody, silent, odd):
        assert found.returncode == 2
        assert "NOTHING was checked" in found.stderr
