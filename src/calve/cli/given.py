"""Params given on the command line: ``-p name=value``."""

import json
from typing import Any

import click

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
        raise click.BadParameter(f"{given!r} is not of the form NAME=VALUE", param_hint="-p")
    try:
        return name.strip(), json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return name.strip(), text


def _refuse(word: str) -> None:
    """Take NaN and Infinity for text: JSON has none."""
    raise ValueError(word)
