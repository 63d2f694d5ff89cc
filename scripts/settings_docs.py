"""Generate the tables in the reference of the settings from the fields of the sections and their docstrings.

From the root of the repository: python scripts/settings_docs.py [--check]
"""

import ast
import inspect
import sys
from collections import defaultdict
from datetime import timedelta
from functools import cache
from typing import Any, get_args

from generated import REFERENCE, between, write
from pydantic.fields import FieldInfo

from calve.settings import Settings
from calve.settings.alerts import AlertRule, Channel
from calve.settings.fields import Section, Size, from_json, words
from calve.settings.keys import known_keys, variable_of

PAGE = REFERENCE / "settings.md"
_NAMES = {
    "catalogs": "__NAME__KEY",
    "spark.conf": "__KEY",
    "logs.properties": "__KEY",
    "connections": "__NAME",
    "alerts.channels": "__NAME__KEY",
    "secrets": "__NAME",
}
"""What follows in the variables of tables whose keys people name themselves."""
_SHORT = {"client.url": "CALVE_URL", "client.token": "CALVE_TOKEN"}
_LINKS = {
    "access.tables.policy": "#tables-of-namespaces",
    "alerts.channels": "#alerts",
    "alerts.rules": "#alerts",
    "catalogs": "#catalogs",
    "client.url": "../howto/use-the-client.md",
    "connections": "#connections",
    "http.allow": "#hosts-of-http-steps",
    "logs.location": "#logs-of-steps",
    "retention.instances": "#retention",
    "secret_store.backends": "#secrets",
    "secrets": "#secrets",
    "server.graphql.depth": "graphql.md#limits",
    "server.host": "../howto/secure-a-server.md",
    "spark.conf": "#spark",
    "triggers.catch_up_limit": "../explain/time-triggers.md",
    "triggers.table_interval": "../howto/start-on-change.md",
    "worker.environment": "step-types.md#programs",
    "worker.run_as": "../explain/access.md#steps",
    "worker.tries": "../explain/engine.md#tasks-and-workers",
}
"""Where a key is explained in more than a sentence."""
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_SIZE = get_args(Size)[1]


def page(text: str) -> str:
    """Return the page with its tables."""
    head = ["| key | variable | default | meaning |", "|---|---|---|---|"]
    text = between(text, "keys", "\n".join([*head, *(_row(key) for key in known_keys())]))
    return between(between(text, "channels", _channels()), "rules", _rules())


def _row(key: tuple[str, ...]) -> str:
    section: Any = Settings
    for part in key[:-1]:
        section = section.model_fields[part].annotation
    path, field = ".".join(key), section.model_fields[key[-1]]
    meaning, default = _meaning(section, key[-1])
    validators = [getattr(one, "func", None) for one in field.metadata]
    note = " (JSON)" if from_json in validators else " (list)" if words in validators else ""
    variable = _SHORT.get(path) or variable_of(key) + _NAMES.get(path, "")
    more = f" [More]({_LINKS[path]})" if path in _LINKS else ""
    return f"| `{path}` | `{variable}`{note} | {default or _default(field)} | {meaning}{more} |"


def _channels() -> str:
    """Return the table of the keys of channels, those of the same meaning together."""
    kinds: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for kind in get_args(get_args(Channel)[0]):
        (name,) = get_args(kind.model_fields["type"].annotation)
        for key, field in kind.model_fields.items():
            if key != "type":
                kinds[key, _meaning(kind, key)[0], _default(field)].append(name)
    rows = [
        f"| `{key}` | {', '.join(f'`{one}`' for one in names)} | {default} | {meaning} |"
        for (key, meaning, default), names in kinds.items()
    ]
    return "\n".join(["| key of a channel | of | default | meaning |", "|---|---|---|---|", *rows])


def _rules() -> str:
    fields = AlertRule.model_fields.items()
    rows = [f"| `{key}` | {_default(field)} | {_meaning(AlertRule, key)[0]} |" for key, field in fields]
    return "\n".join(["| key of a rule | default | meaning |", "|---|---|---|", *rows])


def _meaning(section: type[Section], name: str) -> tuple[str, str]:
    """Return what the docstring of a field says, and the default that it names, if any: where code computes it."""
    text = " ".join(_docs(section)[name].split()).replace("``", "`").replace("|", "\\|")
    meaning, _, default = text.partition(" Default: ")
    return meaning, default.removesuffix(".")


@cache
def _docs(section: type[Section]) -> dict[str, str]:
    """Return the docstrings of a section's fields.

    pydantic could do it (``use_attribute_docstrings``), but then parses every section at each start of calve.
    """
    (tree,) = ast.parse(inspect.getsource(section)).body
    assert isinstance(tree, ast.ClassDef)  # noqa: S101 - the source of a class
    return {
        field.target.id: str(text.value.value)
        for field, text in zip(tree.body, tree.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    size = _SIZE in field.metadata and value % 1_000_000 == 0
    return f"`{value // 1_000_000}MB`" if size else _shown(value)


def _shown(value: Any) -> str:
    """Return a value as the file spells it."""
    match value:
        case None | () | "":
            return "none"
        case {}:
            return "none"
        case bool():
            return f"`{str(value).lower()}`"
        case tuple():
            return f"`{' '.join(value)}`"
        case timedelta():
            seconds = int(value.total_seconds())
            return next(f"`{seconds // size}{unit}`" for unit, size in _UNITS if seconds % size == 0)
        case _:
            return f"`{value}`"


def main() -> int:
    """Write the page, or tell that it is out of date."""
    return write({PAGE: page(PAGE.read_text(encoding="utf-8"))}, "settings-docs")


if __name__ == "__main__":
    sys.exit(main())
