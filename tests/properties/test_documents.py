"""Whatever the text, it is read or refused; whatever the value, it is written so that it is read again."""

import json
import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from calve.definition.problems import Problems
from calve.definition.reading import read

_FRAGMENTS = st.sampled_from(
    """a|b:␣|-␣|?␣|:␣|␤|␤␣␣|{|}|[|]|,|&x␣|*x|!t␣|!!str␣|<<|>-␤|'|"|\\|#|---␤|...␤|%YAML␣1.2␤|@|010|1e999|.nan|NO|~|\x85|\t""".replace(
        "␣", " "
    )
    .replace("␤", "\n")
    .split("|")
)
_TEXTS = st.one_of(st.text(), st.lists(_FRAGMENTS, max_size=30).map("".join))


@given(text=st.one_of(_TEXTS, st.binary()), name=st.sampled_from(["a.yaml", "a.json"]))
@example(text="\ufeff\ufeffa: 1", name="a.yaml")
def test_whatever_the_text_it_is_read_or_refused(text: str | bytes, name: str) -> None:
    """Nothing but problems comes of it, and every problem has a place inside of the text."""
    problems = Problems()
    node = read(text, name=name, problems=problems)
    assert node is not None or problems.errors
    lines = len(re.findall(r"\r\n?|\n", text if isinstance(text, str) else text.decode(errors="replace"))) + 1
    for problem in problems:
        assert problem.message
        assert problem.column >= 1
        assert 1 <= problem.line <= lines
        json.dumps(problem.as_json()).encode()


def _read_back(text: str) -> Any:
    problems = Problems()
    node = read(text, name="a.yaml", problems=problems)
    assert not list(problems)
    assert node is not None
    return node.plain()
