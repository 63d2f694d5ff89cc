"""``python -m calve`` is ``calve``."""

from calve.cli import main

main()
