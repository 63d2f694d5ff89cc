"""The page of faults names a test for each of them, and each test is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NUMBERS = [*range(16, 28), *range(38, 53)]
PAGE = (ROOT / "docs/explain/service-faults.md").read_text(encoding="utf-8")


def test_each_fault_has_tests_that_exist() -> None:
    """By the numbers of the matrix, none left out."""
    rows = {int(match[1]): match[0] for match in re.finditer(r"^\| (\d+) \|.*$", PAGE, re.MULTILINE)}
    assert sorted(rows) == NUMBERS
    known = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:def|class) (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    for number, row in rows.items():
        named = re.findall(r"`(test_\w+|EngineMachine)`", row)
        assert named, f"fault {number} has no test"
        assert [name for name in named if name not in known] == [], f"fault {number}"


def test_no_archive_is_unpacked() -> None:
    """Whatever someone hands in is read in its place: of a jar, the manifest alone."""
    unpacks = re.compile(r"\.extract(all)?\(|unpack_archive|import tarfile")
    assert [file.name for file in (ROOT / "src").rglob("*.py") if unpacks.search(file.read_text("utf-8"))] == []
