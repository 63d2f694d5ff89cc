"""Tables written by strangers: whatever their metadata holds, calve answers, or says what is wrong, and goes on."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.scope import in_ci

ROOT = Path(__file__).parents[2]
PARTS = in_ci(2, otherwise=4)
SECONDS = "20"
"""Ten times what a case may take: how fast the machine is, is not what is tested here."""
CASES = in_ci(200, otherwise=300)
"""For each of the parts, which tests beside each other may take; ``make fuzz`` goes on without end."""


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_metadata_is_refused_or_harmless(part: int) -> None:
    """No crash, no exception of a library, nothing without end, and no other answer where none may come."""
    first = str(part * CASES)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.lake", first, str(CASES), SECONDS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.rpartition("\r")[2]
    assert done.returncode == 0, f"it ended with {done.returncode} at seed {last}:\n{done.stdout}"
    assert f"{CASES} cases from {first}: 0 wrong" in done.stdout
