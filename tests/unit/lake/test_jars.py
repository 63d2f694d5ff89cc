"""Jars are fetched once, and only those that are needed."""

import json
from pathlib import Path

import pytest

from calve import settings
from calve.errors import FolderNotWritable, JarsUnavailable
from calve.lake import jars
from calve.lake.java import Java
from calve.settings import Settings


def _settings(folder: Path, toml: str = "") -> Settings:
    (folder / settings.FILE).write_text(toml)
    return settings.load(folder, {"XDG_CACHE_HOME": str(folder / "caches")})


@pytest.mark.parametrize(
    ("toml", "needed"),
    [
        ("", {jars.SQLITE}),
        ("[catalogs.p]\nuri = 'postgresql+psycopg://h/d'\nwarehouse = '/w'", {jars.POSTGRES}),
        ("[catalogs.p]\nuri = 'postgresql+psycopg://h/d'\nwarehouse = 's3://w'", {jars.POSTGRES, jars.AWS}),
        ("[catalogs.r]\nuri = 'https://h'", set()),
        ("[catalogs.r]\nuri = 'https://h'\ns3.region = 'x'", {jars.AWS}),
        ("[catalogs.g]\ntype = 'glue'", {jars.AWS}),
        ("[catalogs.g]\nuri = 'sqlite:///c'\nwarehouse = 'gs://b'", {jars.SQLITE, jars.GCP}),
        ("[catalogs.a]\nuri = 'sqlite:///c'\nwarehouse = 'abfss://c@a/x'", {jars.SQLITE, jars.AZURE}),
        ("[capture]\nlocation = 's3://b/x'", {jars.SQLITE, jars.AWS}),
        ("[spark]\npackages = ['a:b:1']", {jars.SQLITE, "a:b:1"}),
    ],
)
def test_only_what_the_catalogs_need_is_fetched(tmp_path: Path, toml: str, needed: set[str]) -> None:
    """Iceberg's runtime always; drivers and cloud bundles on demand."""
    found = set(jars.coordinates(_settings(tmp_path, toml)))
    assert {jar.removesuffix(":1.11.0") for jar in found} == {jars.ICEBERG} | needed


def test_the_settings_choose_the_version_of_iceberg(tmp_path: Path) -> None:
    """Its runtime and its bundles have the same one."""
    found = _settings(tmp_path, "[spark]\niceberg = '1.12.0'\n[capture]\nlocation = 's3://b/x'")
    assert jars.coordinates(found) == (f"{jars.ICEBERG}:1.12.0", f"{jars.AWS}:1.12.0", jars.SQLITE)


def _fake_java(folder: Path, script: str) -> Java:
    executable = folder / "java"
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    return Java(executable, "17", 17)


_FETCH = """
echo run >> "$(dirname "$0")/runs"
for word in "$@"; do case "$word" in spark.jars.ivy=*) ivy="${word#*=}";; esac; done
mkdir -p "$ivy/jars" && printf abc > "$ivy/jars/a.jar" && printf de > "$ivy/jars/b.jar"
"""


def test_the_second_time_nothing_is_run(tmp_path: Path) -> None:
    """What was fetched is found again, unless a file was damaged or the set changed."""
    found, java = _settings(tmp_path), _fake_java(tmp_path, _FETCH)
    cache = tmp_path / "caches" / "calve" / "jars"
    assert jars.cached(found) is None
    for _ in range(2):
        assert jars.provide(found, java) == [cache / "a.jar", cache / "b.jar"]
    assert (tmp_path / "runs").read_text() == "run\n"
    assert sorted(path.suffix for path in cache.iterdir()) == [".jar", ".jar", ".json"]
    (cache / "a.jar").write_text("half")
    assert jars.cached(found) is None
    jars.provide(found, java)
    assert (cache / "a.jar").read_text() == "abc"
    assert jars.cached(_settings(tmp_path, "[spark]\npackages = ['a:b:1']")) is None


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo ':: UNRESOLVED DEPENDENCIES ::' >&2; exit 1", "UNRESOLVED DEPENDENCIES"),
        ("echo oops >&2; exit 0", "oops"),
        ("exit 3", "no output"),
    ],
)
def test_a_failure_is_explained_and_leaves_nothing(tmp_path: Path, script: str, said: str) -> None:
    """Without a network the error names the coordinates, the reason and a way out."""
    found = _settings(tmp_path)
    with pytest.raises(JarsUnavailable, match=said) as error:
        jars.provide(found, _fake_java(tmp_path, script))
    assert jars.ICEBERG in error.value.message
    assert "spark.jars.ivySettings" in error.value.remedy
    assert list(found.spark.jars_cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error says which folder, and which setting moves it."""
    (tmp_path / "caches").write_text("a file")
    with pytest.raises(FolderNotWritable, match="jars cannot be written: Not a directory") as error:
        jars.provide(_settings(tmp_path), _fake_java(tmp_path, _FETCH))
    assert "jars_cache" in error.value.remedy


def test_a_damaged_list_counts_as_none(tmp_path: Path) -> None:
    """A list that is no JSON is fetched anew."""
    found, java = _settings(tmp_path), _fake_java(tmp_path, _FETCH)
    jars.provide(found, java)
    (listing,) = found.spark.jars_cache.glob("*.json")
    assert json.loads(listing.read_text()) == {"a.jar": 3, "b.jar": 2}
    listing.write_text("{")
    assert jars.cached(found) is None
