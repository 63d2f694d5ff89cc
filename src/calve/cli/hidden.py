"""Texts that nobody else should see: asked for without an echo, or read from standard input; never an argument."""

import sys

import click

from calve.errors import RequestInvalid


def read_hidden(what: str, *, confirm: bool = False) -> str:
    """Return a text that somebody types, or that a program gives; a newline at its end is not part of it.

    Raises:
        RequestInvalid: nothing was given.
    """
    if sys.stdin.isatty():
        text = str(click.prompt(what, hide_input=True, confirmation_prompt=confirm, err=True))
    else:
        text = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if not text:
        raise RequestInvalid("Nothing was given.", remedy="Type it when you are asked, or give it on standard input.")
    return text
