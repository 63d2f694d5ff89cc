"""Java is found, or its absence explained."""

from pathlib import Path

import pytest

from calve.errors import JavaMissing
from calve.lake import java


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', ("17.0.15", 17)),
        ('java version "21" 2023-09-19 LTS', ("21", 21)),
        ('java version "1.8.0_392"', ("8.0_392", 8)),
        ("Unable to locate a Java Runtime.", None),
    ],
)
def test_versions_are_read(text: str, version: tuple[str, int] | None) -> None:
    """Every style of numbering is understood."""
    assert java.parse_version(text) == version


def _fake(folder: Path, version: str) -> Path:
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    executable.chmod(0o755)
    return folder


def test_java_home_comes_first(tmp_path: Path) -> None:
    """The Java of JAVA_HOME is taken if Spark supports it."""
    found = java.find(_fake(tmp_path / "jdk", "21.0.1"))
    assert (found.feature, found.version, found.home) == (21, "21.0.1", tmp_path / "jdk")


def test_an_unfit_java_home_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one on PATH may do."""
    monkeypatch.setenv("PATH", str(_fake(tmp_path / "b", "17.0.1") / "bin"))
    assert java.find(_fake(tmp_path / "a", "11.0.2")).feature == 17


def test_what_was_found_instead_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what is there, the remedy how to install what is not."""
    monkeypatch.setenv("PATH", str(_fake(tmp_path / "b", "1.8.0_392") / "bin"))
    with pytest.raises(JavaMissing) as error:
        java.find(tmp_path / "nowhere")
    assert f"no working Java at {tmp_path}/nowhere/bin/java; Java 8.0_392 at" in error.value.message
    assert "\n" not in error.value.message
    for command in ("apt install", "dnf install", "brew install"):
        assert command in error.value.remedy


def test_no_java_at_all_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty machine gets the same help."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match="not found by JAVA_HOME or PATH"):
        java.find(None)
