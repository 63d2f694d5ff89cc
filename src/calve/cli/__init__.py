"""The command line: each command parses its arguments, performs one operation, and prints the answer.

Others import only ``main``.
"""

from calve.cli.entry import main

__all__ = ["main"]
