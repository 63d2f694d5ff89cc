"""Generate the stub of the step functions and the reference page from the declarations of the step types.

From the root of the repository: python scripts/step_types.py [--check]
"""

import re
import sys
from collections.abc import Iterator
from inspect import Parameter, Signature
from textwrap import indent

from generated import REFERENCE, ROOT, between, write

from calve.definition.step_types import STEP_TYPES, StepType, reference
from calve.dsl.signatures import docstring, function_name, signature

STUB = ROOT / "src" / "calve" / "dsl" / "steps.pyi"
PAGE = REFERENCE / "step-types.md"
MODULES = {
    "collections.abc": ("Mapping", "Sequence"),
    "typing": ("Literal",),
    "calve.dsl.any_step": ("FailureMode",),
    "calve.dsl.graph": ("Loop", "Step"),
    "calve.dsl.retries": ("Retry",),
    "calve.dsl.signals": ("SignalDependency", "SignalOutput"),
    "calve.dsl.triggers": ("Duration",),
    "calve.dsl.values": (
        "Flag",
        "Items",
        "Number",
        "Param",
        "Quantity",
        "Reference",
        "Scalar",
        "Tags",
        "Text",
        "TextMap",
        "Texts",
        "Value",
        "ValueMap",
        "Whole",
        "Wholes",
    ),
}
"""Where the types of keywords come from."""


def stub() -> str:
    """Return the stub of ``calve.dsl.steps``."""
    types = {function_name(item): item for item in STEP_TYPES.values() if not item.refused}
    functions = [types[name] for name in sorted(types)]
    imports = "\n".join(f"from {module} import {', '.join(names)}" for module, names in MODULES.items())
    exported = "\n".join(f'    "{function_name(item)}",' for item in functions)
    return "\n".join(
        [
            "# Made by `make step-types` from the declarations in calve.definition.step_types.",
            f"{imports}\n",
            f"__all__ = [\n{exported}\n]\n",
            *(_function(item) for item in functions),
        ]
    )


def _function(step_type: StepType) -> str:
    accepted = signature(step_type)
    text = indent(docstring(step_type), "    ").strip()
    keywords = "\n".join(f"    {line}," for line in _parameters(accepted))
    return f'def {function_name(step_type)}(\n{keywords}\n) -> {accepted.return_annotation}:\n    """{text}\n    """\n'


def _parameters(accepted: Signature) -> Iterator[str]:
    first, *keywords, more = accepted.parameters.values()
    yield from (f"{first.name}: {first.annotation}", "/", "*")
    for item in keywords:
        default = "" if item.default is Parameter.empty else f" = {item.default!r}"
        yield f"{item.name}: {item.annotation}{default}"
    yield f"**{more.name}: {more.annotation}"


def page(text: str) -> str:
    """Return the reference page with what follows from the declarations."""
    for step_type in STEP_TYPES.values():
        if not step_type.refused:
            text = _section(text, step_type)
    refused = [f"| `{item.name}` | {item.refused}. |" for item in STEP_TYPES.values() if item.refused]
    return between(text, "refused", "\n".join(["| type | why, and what to use |", "|---|---|", *refused, ""]))


def _section(text: str, step_type: StepType) -> str:
    """Replace the first paragraph of a section, and its tables."""
    heading = f"^(## `{step_type.name}`\n\n).*"
    text = re.sub(heading, lambda found: f"{found[1]}{step_type.doc}", text, flags=re.MULTILINE)
    tables = reference(step_type)
    return between(text, step_type.name, tables) if tables else text


def main() -> int:
    """Write both files, or tell which of them are out of date."""
    return write({STUB: stub(), PAGE: page(PAGE.read_text(encoding="utf-8"))}, "step-types")


if __name__ == "__main__":
    sys.exit(main())
