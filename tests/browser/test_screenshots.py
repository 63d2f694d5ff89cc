"""The pictures of the documentation: every page of one still shows what it shows there."""

import struct
from pathlib import Path

from playwright.sync_api import Browser
from tests.browser.screenshots import FOLDER, LIMIT, PICTURES, take_all

DOCS = FOLDER.parents[1]


def _size(file: Path) -> tuple[int, int]:
    """Return the width and the height of a PNG."""
    return struct.unpack(">II", file.read_bytes()[16:24])


def test_every_picture_can_be_taken_again(browser: Browser, tmp_path: Path) -> None:
    """In the size of the one that is stored; ``make screenshots`` stores them."""
    work = tmp_path / "work"
    work.mkdir()
    taken = list(take_all(browser, tmp_path, work, commits=16, runs=3))
    assert {file.name for file in taken} == {picture.file for picture in PICTURES}
    for file in taken:
        assert _size(file) == _size(FOLDER / file.name), file.name


def test_every_picture_is_shown_and_small() -> None:
    """Each that is stored is taken by the mechanism, and on some page; none is on a page without being stored."""
    assert {file.name for file in FOLDER.iterdir()} == {picture.file for picture in PICTURES}
    text = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    for picture in PICTURES:
        assert f"assets/ui/{picture.file}" in text
        assert (FOLDER / picture.file).stat().st_size <= LIMIT
