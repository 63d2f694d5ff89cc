"""``make test-scale``: the whole house at once, for as long as it takes to strike every place often enough."""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.scale.run import run


def main() -> None:
    """Run, and print what was struck."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=20, help="how often each place has to be struck")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="what the kills are drawn from")
    given = parser.parse_args()
    folder, began = Path(tempfile.mkdtemp(prefix="calve-scale-")), time.monotonic()

    def say(text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:7.1f} s  {text}\n")
        sys.stdout.flush()

    say(f"seed {given.seed}, logs in {folder}")
    tally = run(folder, given.each, given.seed, say)
    sys.stdout.write(f"{tally.report()}\n")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
