"""Functions that the scripts for reference pages share."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"


def between(text: str, name: str, made: str) -> str:
    """Replace what is between ``<!-- name -->`` and ``<!-- end -->``; the rest of a page is written by hand.

    Raises:
        LookupError: the text does not have these markers.
    """
    begin, end = f"<!-- {name} -->", "<!-- end -->"
    after, found = re.subn(f"{begin}\n.*?{end}", lambda _: f"{begin}\n\n{made.strip()}\n\n{end}", text, flags=re.DOTALL)
    if found != 1:
        raise LookupError(f"There must be one {begin} … {end}, there are {found}.")
    return after


def write(made: Mapping[Path, str], target: str) -> int:
    """Write files; with ``--check``, name those that are out of date instead, and return 1 if there are any."""
    is_check = sys.argv[1:] == ["--check"]
    stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if is_check:
            sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: run make {target}.\n")
        else:
            path.write_text(made[path], encoding="utf-8")
    return int(is_check and bool(stale))
