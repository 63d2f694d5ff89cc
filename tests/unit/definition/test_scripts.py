"""``$S3{path}``: what is read, and what never is."""

from pathlib import Path

import pytest
from tests.unit.definition.placing import only, placed

from calve.definition.files import LARGEST, ScriptFolder, inline, is_inside
from calve.definition.problems import Problems, Severity
from calve.errors import RequestInvalid


class Files(dict[str, str]):
    """Files that are only names and texts."""

    def read(self, path: str) -> str | None:
        """Return the text; one file cannot be read."""
        if path == "locked.sql":
            raise RequestInvalid("locked.sql cannot be read")
        return self.get(path)


def test_the_text_of_the_file_takes_the_place_of_its_name() -> None:
    """Wherever in a document it stands; the rest is left alone."""
    document = placed({"a": ["x $S3{q.sql} y", 1, None], "b": {"c": "no script"}})
    problems = Problems()
    found = inline(document, Files({"q.sql": "SELECT ${x}"}), problems)
    assert found.plain() == {"a": ["x SELECT ${x} y", 1, None], "b": {"c": "no script"}}
    assert not [*problems]


def test_a_name_after_an_escaped_dollar_is_text() -> None:
    """``$$`` stands for a dollar, as everywhere."""
    found = inline(placed("$$S3{q.sql} $$$S3{q.sql}"), Files({"q.sql": "one"}), Problems())
    assert found.plain() == "$$S3{q.sql} $$one"


def test_a_missing_file_is_warned_of_and_the_name_stays() -> None:
    """A definition can be checked without its scripts."""
    problems = Problems()
    assert inline(placed("$S3{q.sql}"), Files(), problems).plain() == "$S3{q.sql}"
    assert only(problems).severity is Severity.WARNING
    assert only(problems).code == "script_missing"


def test_a_file_that_cannot_be_read_is_an_error() -> None:
    """It says why."""
    problems = Problems()
    inline(placed("$S3{locked.sql}"), Files(), problems)
    assert only(problems).message == "locked.sql cannot be read"


OUTSIDE = [
    "",
    " ",
    "/etc/passwd",
    "//host/share",
    "../up.sql",
    "a/../../up.sql",
    "a/..",
    "..",
    "..\\up.sql",
    "a\\b.sql",
    "C:\\x.sql",
    "c:x.sql",
    "file:///etc/passwd",
    "file://x",
    "s3://bucket/x.sql",
    "http://host/x",
    "~/x.sql",
    "~root/x",
    "a\x00b.sql",
    "a\nb.sql",
    "a\tb",
    "\x1b[0m",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_out_of_the_folder_is_refused_without_reading(path: str) -> None:
    """Before any file is looked at."""
    problems = Problems()
    assert inline(placed(f"$S3{{{path}}}"), Files(), problems).plain() == f"$S3{{{path}}}"
    assert only(problems).code == "script_outside"


@pytest.mark.parametrize(
    "path", ["q.sql", "a/b/q.sql", "./q.sql", "a..b.sql", "...", "é/ü.sql", "-x", "a b.sql", "con"]
)
def test_a_path_below_the_folder_is_fine(path: str) -> None:
    """Whatever its letters are."""
    assert is_inside(path)


def test_only_files_inside_the_folder_can_be_read(tmp_path: Path) -> None:
    """A link that leads out of it is refused, whatever it is called."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "q.sql").write_text("SELECT 1")
    (tmp_path / "secret").write_text("no")
    (folder / "out.sql").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    (folder / "in.sql").symlink_to(folder / "q.sql")
    scripts = ScriptFolder(folder)
    assert scripts.read("q.sql") == "SELECT 1"
    assert scripts.read("in.sql") == "SELECT 1"
    assert scripts.read("none.sql") is None
    for path in ("out.sql", "up/secret"):
        with pytest.raises(RequestInvalid, match="a file outside"):
            scripts.read(path)


def test_a_file_that_is_not_a_script_is_refused(tmp_path: Path) -> None:
    """Too large, no text, or a name that no file can have."""
    (tmp_path / "large.sql").write_bytes(b"x" * (LARGEST + 1))
    (tmp_path / "binary.sql").write_bytes(b"\xff\xfe\x00")
    scripts = ScriptFolder(tmp_path)
    for path in ("large.sql", "binary.sql", "a\x00b", "x" * 5000):
        with pytest.raises(RequestInvalid):
            scripts.read(path)
