"""A Python file is run for the workflows that it describes."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from calve.dsl import Workflow, workflows_in
from calve.errors import DefinitionInvalid, RequestInvalid

TWO = """\
from calve.dsl import Workflow, noop

with Workflow("one") as wf:
    noop("a")

def second():
    with Workflow("two") as wf:
        noop("b")

second()
assert __name__ != "__main__"
"""


def _file(folder: Path, text: str, name: str = "flows.py") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(dedent(text))
    return file


def test_every_workflow_is_found_in_order(tmp_path: Path) -> None:
    """Also those that have no name in the file."""
    found = workflows_in(_file(tmp_path, TWO))
    assert [wf.id for wf in found] == ["one", "two"]
    assert found[1].build().workflow.steps[0].id == "b"


def test_a_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a text."""
    _file(tmp_path, TWO)
    monkeypatch.chdir(tmp_path)
    assert len(workflows_in("flows.py")) == 2


def test_problems_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its line, and short if it is below the current folder."""
    text = """\
        from calve.dsl import Workflow, noop
        with Workflow("w") as wf:
            noop("not an id")
        """
    monkeypatch.chdir(tmp_path)
    (wf,) = workflows_in(_file(tmp_path, text))
    with pytest.raises(DefinitionInvalid, match=r"^flows\.py:3: id: "):
        wf.build()


def test_workflows_elsewhere_are_not_gathered(tmp_path: Path) -> None:
    """Neither those before nor those after."""
    Workflow("before")
    found = workflows_in(_file(tmp_path, TWO))
    Workflow("after")
    assert len(found) == 2


def test_modules_beside_the_file_are_its_own(tmp_path: Path) -> None:
    """Two folders may have modules of one name, and neither is left behind."""
    for folder in ("a", "b"):
        _file(tmp_path / folder, f"ID = 'from_{folder}'", "shared_names.py")
        text = "import json\nimport shared_names\nfrom calve.dsl import Workflow\nWorkflow(shared_names.ID)"
        _file(tmp_path / folder, text)
    path = list(sys.path)
    found = [wf.id for folder in ("a", "b") for wf in workflows_in(tmp_path / folder / "flows.py")]
    assert found == ["from_a", "from_b"]
    assert "shared_names" not in sys.modules
    assert sys.path == path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n1 / 0", r"flows\.py:2: ZeroDivisionError: division by zero"),
        ("x = 1\nx = (", r"flows\.py:2: SyntaxError: '\(' was never closed"),
        ("import sys\nsys.exit()", r"flows\.py:2: SystemExit$"),
        ("from calve.dsl import spark, Workflow\nWorkflow()", r"flows\.py:2: TypeError: .*workflow_id"),
        ("import json\n\njson.loads('x')", r"flows\.py:3: JSONDecodeError: "),
        ("import broken_beside", r"broken_beside\.py:2: NameError: "),
        ("raise SyntaxError('made up')", r"flows\.py:1: SyntaxError: made up"),
        ("\0", r"flows\.py:1: "),
    ],
)
def test_errors_of_the_file_name_its_line(tmp_path: Path, text: str, message: str) -> None:
    """Whatever is raised, the last line of the user's own code is told."""
    _file(tmp_path, "\nundefined_name", "broken_beside.py")
    with pytest.raises(DefinitionInvalid, match=message) as caught:
        workflows_in(_file(tmp_path, text))
    assert str(caught.value.context["file"]).startswith(str(tmp_path))
    assert caught.value.__cause__ is not None


def test_our_own_errors_come_as_they_are(tmp_path: Path) -> None:
    """They name their line already."""
    with pytest.raises(RequestInvalid, match=r"flows\.py:2: the step a is outside of every workflow"):
        workflows_in(_file(tmp_path, "from calve.dsl import noop\nnoop('a')"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Is told by its name."""
    with pytest.raises(RequestInvalid, match=r"nothing\.py is not a file"):
        workflows_in(tmp_path / "nothing.py")


def test_modules_from_elsewhere_stay_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not the file was the first to ask for them."""
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    workflows_in(_file(tmp_path, f"import colorsys\n{TWO}"))
    assert "colorsys" in sys.modules
