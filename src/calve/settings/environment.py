"""Variables: those that override keys of the file, and those for other programs.

A variable's name is the key's path, joined by two underscores: ``CALVE_STORE__URL`` is ``[store] url``. In
the free-form tables (a catalog's properties, ``[spark.conf]``, ``[logs.properties]``) two underscores mean a
dot and one means a hyphen, as in PyIceberg: ``CALVE_CATALOGS__LAKE__S3__ACCESS_KEY_ID`` is
``s3.access-key-id``. An empty variable counts as unset.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from calve.environment import PREFIX
from calve.errors import SettingsInvalid
from calve.settings.keys import FILE, Key, known_keys, unknown_variable

_FOREIGN = (  # read by others: the client, the tests, the programs of steps
    "CALVE_URL",
    "CALVE_TOKEN",
    "CALVE_TEST_",
    "CALVE_OUTPUT",
    "CALVE_WORKFLOW_ID",
    "CALVE_INSTANCE_ID",
    "CALVE_RUN_ID",
    "CALVE_STEP_ID",
    "CALVE_ATTEMPT_",
)


def override(raw: dict[str, Any], environ: Mapping[str, str]) -> dict[Key, str]:
    """Put the environment's values into ``raw``; return which variable each one came from."""
    origins: dict[Key, str] = {}
    for variable, value in sorted(environ.items()):
        if not variable.startswith(PREFIX) or variable.startswith(_FOREIGN) or not value:
            continue
        path = _path_of(variable, raw)
        table = raw
        for key in path[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise SettingsInvalid(f"{variable}: {key} is a value, not a table, in {FILE}.", variable=variable)
        table[path[-1]] = value
        origins[path] = variable
    return origins


@contextmanager
def exported(**variables: str) -> Iterator[None]:
    """Set variables for programs started meanwhile, such as Spark's JVM."""
    before = {name: os.environ.get(name) for name in variables}  # noqa: TID251 - the one place
    os.environ.update(variables)  # noqa: TID251 - the one place
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]  # noqa: TID251 - the one place
            else:
                os.environ[name] = value  # noqa: TID251 - the one place


def _path_of(variable: str, raw: Mapping[str, Any]) -> Key:
    """Return the key that a variable overrides."""
    section, *rest = variable.removeprefix(PREFIX).lower().split("__")
    match section, rest:
        case "catalogs", [name, "spark", *key] if key:
            return _free(key, raw, "catalogs", _same(name, raw, "catalogs"), "spark")
        case "catalogs", [name, *key] if key:
            return _free(key, raw, "catalogs", _same(name, raw, "catalogs"))
        case "spark", ["conf", *key] if key:
            return _free(key, raw, "spark", "conf")
        case "logs", ["properties", *key] if key:
            return _free(key, raw, "logs", "properties")
        case "alerts", ["channels", name, key]:
            return ("alerts", "channels", _same(name, raw, "alerts", "channels", made=name), key)
        case "connections" | "secrets", [*names] if names:  # the dots in the name give its namespace
            name = ".".join(names)
            return (section, _same(name, raw, section, made=name))
        case _:
            return _fixed((section, *rest), variable)


def _fixed(path: Key, variable: str) -> Key:
    if path not in set(known_keys()):
        raise unknown_variable(path, variable)
    return path


def _free(key: list[str], raw: Mapping[str, Any], *above: str) -> Key:
    return (*above, _same(".".join(key), raw, *above))


def _same(key: str, raw: Mapping[str, Any], *above: str, made: str | None = None) -> str:
    """Return the key of the table ``above`` that a variable means, or the new one: ``made``, else with hyphens."""
    table: Any = raw
    for step in above:
        table = table.get(step, {}) if isinstance(table, Mapping) else {}
    plain = key.replace("-", "_")
    names = table if isinstance(table, Mapping) else ()
    found = (name for name in names if name.lower().replace("-", "_") == plain)
    return next(found, key.replace("_", "-") if made is None else made)
