"""Loading of settings: defaults and paths that depend on the folder of the project."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from calve.environment import given
from calve.errors import SettingsInvalid
from calve.settings.environment import override
from calve.settings.keys import FILE, explained, line_of, unknown_key
from calve.settings.lake import SparkSettings
from calve.settings.settings import Settings

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SQLITE = re.compile(r"(sqlite(?:\+\w+)?):///(?!/)([^?:]+)(\?.*)?")

Table = dict[str, Any]


def with_defaults(raw: Table, project: Path, environ: Mapping[str, str]) -> Table:
    """Fill in defaults that depend on the project, and make every path absolute."""
    home = project / str(raw.get("home", ".calve"))
    catalogs = _table(raw, "catalogs") or {"lake": _embedded_lake(home)}
    return raw | {
        "home": home,
        "store": _store(_table(raw, "store"), project, home),
        "catalogs": {name: _catalog(table, project) for name, table in catalogs.items()},
        "default_catalog": raw.get("default_catalog") or ("lake" if "lake" in catalogs else next(iter(catalogs))),
        "spark": _spark(_table(raw, "spark"), project, environ),
        "capture": _capture(_table(raw, "capture"), project),
        "connections": {name: _absolute_sqlite(url, project) for name, url in _named(_table(raw, "connections"))},
        "http": _table(raw, "http"),
        "docker": _given(environ, {"host": "DOCKER_HOST"}) | _table(raw, "docker"),
        "kubernetes": _with_paths(_table(raw, "kubernetes"), project, "config"),
        "secret_store": _with_paths(
            {"key_file": home / "secret.key"} | _table(raw, "secret_store"), project, "key_file", "folder"
        ),
        "lineage": _with_paths(_table(raw, "lineage"), project, "file"),
        "client": _table(raw, "client") | _given(environ, {"url": "CALVE_URL", "token": "CALVE_TOKEN"}),
    }


def _table(raw: Table, section: str) -> Table:
    table = raw.get(section, {})
    if not isinstance(table, dict):
        raise SettingsInvalid(f"{section} is a table: write [{section}].", key=section)
    return table


def _named(table: Table, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a table by dotted name; TOML makes tables of unquoted dots."""
    for key, value in sorted(table.items(), key=lambda item: not isinstance(item[1], dict)):
        if isinstance(value, dict):
            yield from _named(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _given(environ: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Return the values of variables whose names follow no rule: those of other programs, and two short ones."""
    return {key: environ[name] for key, name in names.items() if environ.get(name)}


def _embedded_lake(home: Path) -> Table:
    return {"type": "sql", "uri": f"sqlite:///{home}/lake/catalog.db", "warehouse": f"{home}/lake/warehouse"}


def _store(table: Table, project: Path, home: Path) -> Table:
    return table | {"url": _absolute_sqlite(table.get("url", f"sqlite:///{home}/state.db"), project)}


def _catalog(table: Any, project: Path) -> Any:
    """Make the paths of a catalog absolute; a REST catalog's warehouse is a name."""
    if not isinstance(table, dict) or not isinstance(table.get("uri"), str):
        return table
    table = table | {"uri": _absolute_sqlite(table["uri"], project)}
    if isinstance(table.get("warehouse"), str) and table["uri"].startswith(("sqlite", "postgresql")):
        table["warehouse"] = _absolute(table["warehouse"], project)
    return table


def _spark(table: Table, project: Path, environ: Mapping[str, str]) -> Table:
    caches = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = {"jars_cache": caches / "calve" / "jars", **_given(environ, {"java_home": "JAVA_HOME"})}
    spark = found | table
    return spark | {"jars_cache": project / str(spark["jars_cache"])}


def _capture(table: Table, project: Path) -> Table:
    location = table.get("location")
    return table | {"location": _absolute(location, project)} if isinstance(location, str) else table


def _with_paths(table: Table, project: Path, *keys: str) -> Table:
    """Return a table with paths relative to the project, or to the home folder after ``~``."""
    given = {key: table[key] for key in keys if isinstance(table.get(key), str)}
    return table | {key: project / Path(path).expanduser() for key, path in given.items()}


def _absolute(location: str, project: Path) -> str:
    return location if _SCHEME.match(location) else str(project / location)


def _absolute_sqlite(url: Any, project: Path) -> Any:
    match = _SQLITE.fullmatch(url) if isinstance(url, str) else None
    return f"{match[1]}:///{project / match[2]}{match[3] or ''}" if match else url


def load(folder: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of the project that contains ``folder``, by default the current one.

    Raises:
        SettingsInvalid: a key or a variable is unknown, or its value is invalid.
    """
    environ = given() if environ is None else environ
    folder = (folder or Path.cwd()).absolute()
    if not folder.is_dir():
        raise SettingsInvalid(f"{folder} is not a folder.")
    file = next((at / FILE for at in (folder, *folder.parents) if (at / FILE).is_file()), None)
    project = file.parent if file else folder
    raw = _read(file) if file else {}
    origins = override(raw, environ)
    try:
        return Settings.model_validate({**with_defaults(raw, project, environ), "project": project})
    except ValidationError as error:
        raise explained(error, origins, file) from error


def embedded(home: Path, like: Settings) -> Settings:
    """Return settings for a lake of its own in ``home``, on a local Spark, with Java and jars found as in ``like``."""
    fetching = {name: value for name, value in like.spark.conf.items() if name.startswith("spark.jars.")}
    spark = SparkSettings(
        conf=fetching,
        driver_memory=like.spark.driver_memory,
        jars_cache=like.spark.jars_cache,
        java_home=like.spark.java_home,
    )
    raw = with_defaults({"home": str(home)}, home, {})
    return Settings.model_validate({**raw, "spark": spark, "project": home})


def _read(file: Path) -> dict[str, Any]:
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{file} is not valid TOML: {error}", file=str(file)) from error
    if "project" in raw:  # a field of Settings, but the folder says it
        line = line_of(file.read_text(encoding="utf-8"), ("project",))
        raise unknown_key(("project",), f"{file}, line {line}")
    return raw
