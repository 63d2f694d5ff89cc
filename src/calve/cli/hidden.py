"""Texts that nobody else should see: asked for without an echo, or read from standard input; never an argument."""

import sys

import click

from calve.errors import RequestInvalid
from calve.texts import check_text


def read_hidden(what: str, *, confirm: bool = False) -> str:
    """Return a text that somebody types, or that a program gives; a newline at its end is not part of it.

    Raises:
        RequestInvalid: nothing was given, or no text.
    """
    if sys.stdin.isatty():
        text = str(click.prompt(what, hide_input=True, confirmation_prompt=confirm, err=True))
    else:
        text = _read().removesuffix("\n").removesuffix("\r")
    if not text:
        raise RequestInvalid("Nothing was given.", remedy="Type it when you are asked, or give it on standard input.")
    check_text(text, what)
    return text


def _read() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise RequestInvalid("Standard input is not UTF-8.", remedy="Give text that is encoded as UTF-8.") from error
