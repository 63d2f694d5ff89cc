"""How long does ``calve`` take to start? Prints milliseconds, and the ratio to a bare interpreter in the same run."""

import statistics
import subprocess
import sys
import time

import click

RUNS = 15
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import calve": ["-c", "import calve"],
    "calve --help": ["-m", "calve", "--help"],
}


def measured(arguments: list[str]) -> float:
    """Return the median of some runs, in milliseconds."""
    took = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
        took.append((time.perf_counter() - start) * 1000)
    return statistics.median(took)


def main() -> None:
    figures = {name: measured(arguments) for name, arguments in COMMANDS.items()}
    bare = figures["python -c pass"]
    for name, took in figures.items():
        click.echo(f"{name:<16}{took:>8.0f} ms{took / bare:>8.1f} ×")


if __name__ == "__main__":
    main()
