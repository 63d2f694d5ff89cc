"""The command line: parse, one call, print."""

from calve.cli.entry import main

__all__ = ["main"]
