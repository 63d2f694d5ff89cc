"""Options and arguments that several commands take: params as ``-p name=value``, steps, passwords."""

import json
import sys
from typing import Any

import click

from calve.errors import RequestInvalid
from calve.texts import check_text

params_option = click.option(
    "-p",
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda _, __, given: dict(parse_param(text) for text in given),
    help="Set a param. VALUE is read as JSON if it is valid JSON (5, true, [1, 2], '\"5\"'), else as text. Repeatable.",
)
"""Adds ``-p`` to a command, which receives the params as a mapping."""


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
    """Refuse NaN and Infinity, which JSON does not have; such a value stays text."""
    raise ValueError(word)


def read_hidden(what: str, *, confirm: bool = False) -> str:
    """Prompt for a text without echoing it, or read it from standard input without its final newline.

    The text cannot be an argument, because other users can see arguments in the list of processes.

    Raises:
        RequestInvalid: it is empty, or not UTF-8.
    """
    if sys.stdin.isatty():
        text = str(click.prompt(what, hide_input=True, confirmation_prompt=confirm, err=True))
    else:
        text = _read().removesuffix("\n").removesuffix("\r")
    if not text:
        raise RequestInvalid("The input is empty.", remedy="Type the text when prompted, or pass it on standard input.")
    check_text(text, what)
    return text


def _read() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise RequestInvalid("Standard input is not UTF-8.", remedy="Pass text that is encoded as UTF-8.") from error
