"""The pages about the DSL are true: their code runs, and nothing is left out."""

import re
from pathlib import Path

import pytest

from calve import dsl
from calve.dsl import workflows_in

DOCS = Path(__file__).parents[3] / "docs"
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$",
    (DOCS / "howto" / "write-workflows-in-python.md").read_text(encoding="utf-8"),
    flags=re.DOTALL | re.MULTILINE,
)


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda text: next(iter(re.findall(r'Workflow\(\s*f?"([^"]+)', text)), "")
)
def test_every_example_builds(example: str, tmp_path: Path) -> None:
    """Each block of code of the page describes workflows that have no problem."""
    file = tmp_path / "example.py"
    file.write_text(example, encoding="utf-8")
    for wf in workflows_in(file):
        wf.build()


def test_the_reference_names_everything() -> None:
    """Every function, and the workflow, stands in a table of the page."""
    page = (DOCS / "reference" / "python-dsl.md").read_text(encoding="utf-8")
    functions = [name for name in dsl.__all__ if name.islower()]
    assert [name for name in functions if f"`{name}`" not in page] == []
