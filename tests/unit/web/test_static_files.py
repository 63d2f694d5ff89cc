"""Files that the pages load: those of others are the ones that were checked, templates hold no script."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from calve.web import static_files

TEMPLATES = Path(static_files.__file__).parent / "templates"
FORBIDDEN = re.compile(
    r"<style|style=|hx-on|\son[a-z]+=|js:|javascript:|<script(?![^>]*\bsrc=)|\| *safe\b", re.IGNORECASE
)


def test_vendored_files_are_those_that_are_listed() -> None:
    """By hash; none is missing, none is left over."""
    folder = static_files.FOLDER / "vendor"
    packages = json.loads((folder / "vendor.json").read_text(encoding="utf-8"))
    assert all(package["licence"] and package["version"] for package in packages)
    listed = {file["path"]: file["sha256"] for package in packages for file in package["files"]}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.*s")}
    assert found == listed


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_a_template_holds_no_script_and_no_style(path: Path) -> None:
    """The Content-Security-Policy forbids it, and what htmx would evaluate; nor is anything let through unescaped."""
    assert FORBIDDEN.findall(path.read_text(encoding="utf-8")) == []


def test_addresses_change_with_the_files() -> None:
    """They hold the hash of all of them."""
    assert static_files.address("style.css") == f"/static/{static_files.digest()}/style.css"


def test_nothing_is_missing() -> None:
    """Templates and scripts name files of the package."""
    assert static_files.missing() == []


def test_a_server_starts_and_answers_without_some_of_its_files(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning names them, and what to do; the pages are answered as far as they go."""
    gone = {"style.css", "elements/shadow.js", "vendor/htmx.min.js"}
    kept = {name: file for name, file in static_files.static_files().items() if name not in gone}
    monkeypatch.setattr(static_files, "static_files", lambda: kept)
    static_files.warn()
    (said,) = [record.getMessage() for record in caplog.records]
    assert "elements/shadow.js, style.css, vendor/htmx.min.js are missing in" in said
    assert "pip install --force-reinstall" in said
    assert static_files.address("style.css").endswith("/style.css")
