"""The settings of a project: read from its file and the environment."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from calve.environment import given
from calve.errors import SettingsInvalid
from calve.settings.defaults import with_defaults
from calve.settings.environment import override
from calve.settings.lake import SparkSettings
from calve.settings.naming import FILE, explained, line_of, unknown_key
from calve.settings.settings import Settings


def load(folder: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of the project that ``folder`` (the current one by default) lies in.

    Raises:
        SettingsInvalid: a key or a variable is unknown, or its value makes no sense.
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
