"""What is given on the command line: params as ``-p name=value``, and places."""

import json
from typing import TYPE_CHECKING, Any

import click

from calve.texts import check_text

if TYPE_CHECKING:
    from calve.engine import Address

params_option = click.option(
    "-p",
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda _, __, given: dict(parse_param(text) for text in given),
    help="Give a param. VALUE is JSON where it reads as JSON (5, true, [1, 2], '\"5\"'), otherwise text.",
)
"""Gives a command ``-p``, which it receives as a mapping."""


def parse_param(given: str) -> tuple[str, Any]:
    """Return the name and the value of one ``NAME=VALUE``."""
    name, equals, text = given.partition("=")
    if not equals or not name.strip():
        raise click.BadParameter(f"{given!r} is not of the form NAME=VALUE")
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        value = text
    check_text(value, name.strip())
    return name.strip(), value


def _refuse(word: str) -> None:
    """Take NaN and Infinity for text: JSON has none."""
    raise ValueError(word)


def address(workflow: str, instance: int, path: str | None = None, run_id: int | None = None) -> "Address":
    """Return where something is; a path is ``job``, ``loop/3/job``."""
    from calve.engine import Address

    return Address(workflow, instance, run_id, tuple(part for part in (path or "").split("/") if part))
