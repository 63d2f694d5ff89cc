"""A text is read without trusting it, and what is wrong with it has a place."""

from typing import Any

import pytest
import yaml

from calve.definition.document import Mark, Node
from calve.definition.problems import Problem, Problems, Severity
from calve.definition.syntax import read, yaml_reader

TALK = """\
Workflow:
  id: auto.remediation.pipeline
  jobs:
    - subworkflow: {id: normal_workflow, workflow_id: demo.pipeline, failure_mode: IGNORE_FAILURE}
    - job: {id: check_status, type: NoOp}
  dag:
    - normal_workflow -> check_status
    - check_status:
        IF params.getFromStep('normal_workflow', 'MAESTRO_STEP_STATUS') == 'COMPLETED_WITH_ERROR': recovery -> re_run
        OTHERWISE: end
"""


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test with both of PyYAML's parsers: not every machine has libyaml."""
    if request.param == "python":
        monkeypatch.setattr(yaml_reader, "_PARSER", yaml.BaseLoader)


def _read(text: str | bytes, name: str = "workflow.yaml") -> tuple[Node | None, list[Problem]]:
    problems = Problems()
    return read(text, name=name, problems=problems), list(problems)


def _plain(text: str | bytes, name: str = "workflow.yaml") -> Any:
    node, problems = _read(text, name)
    assert not [problem for problem in problems if problem.severity is Severity.ERROR]
    assert node is not None
    return node.plain()


def _only(text: str | bytes, name: str = "workflow.yaml") -> Problem:
    _, problems = _read(text, name)
    assert len(problems) == 1, problems
    return problems[0]


def _place(problem: Problem) -> tuple[str, int, int]:
    return problem.code, problem.line, problem.column


def test_a_workflow_of_the_talk_is_read_as_written() -> None:
    """Conditions are keys, dotted ids are texts."""
    workflow = _plain(TALK)["Workflow"]
    assert workflow["id"] == "auto.remediation.pipeline"
    assert workflow["jobs"][1] == {"job": {"id": "check_status", "type": "NoOp"}}
    condition, otherwise = workflow["dag"][1]["check_status"]
    assert condition == "IF params.getFromStep('normal_workflow', 'MAESTRO_STEP_STATUS') == 'COMPLETED_WITH_ERROR'"
    assert otherwise == "OTHERWISE"


def test_every_value_and_key_has_a_place() -> None:
    """Lines and columns start at 1; a path leads from the top to the value."""
    node, _ = _read(TALK)
    assert node is not None
    assert (node.mark, node.path, node.key_mark) == (Mark(1, 1), "", None)
    found = node.at(("Workflow", "jobs", 1, "job", "id"))
    assert (found.path, found.mark, found.key_mark) == ("Workflow.jobs[1].job.id", Mark(5, 17), Mark(5, 13))


def test_a_path_quotes_keys_that_are_not_one_word() -> None:
    """Dots, spaces and brackets in a key cannot be taken for steps of the path; very long keys are cut."""
    long = "k" * 200
    node, _ = _read(f'a-b: {{job.1: {{x y: [1], "": 2, "q\\"": 3, {long}: 4}}}}')
    assert node is not None
    found = node.at(("a-b", "job.1"))
    assert found.path == 'a-b["job.1"]'
    assert found.at(("x y", 0)).path == 'a-b["job.1"]["x y"][0]'
    assert found.at(("",)).path == 'a-b["job.1"][""]'
    assert found.at(('q"',)).path == 'a-b["job.1"]["q\\""]'
    assert found.at((long,)).path == f'a-b["job.1"]["{"k" * 100}…"]'


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("+7", 7),
        ("-0", 0),
        ("9223372036854775807", 2**63 - 1),
        ("1_000", "1_000"),
        ("0b1", "0b1"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("1.2.3", "1.2.3"),
        ("~", None),
        ("", None),
        ("null", None),
        ("True", True),
        ("false", False),
        ("'true'", "true"),
        ("tRUE", "tRUE"),
        ("y", "y"),
        ("=", "="),
        ("٣", "٣"),
    ],
)
def test_a_scalar_means_what_the_core_schema_of_yaml_says(written: str, value: object) -> None:
    """No sexagesimal numbers, no octal by a leading zero, no dates."""
    got = _plain(f"a: {written}")["a"]
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("written", ["NO", "yes", "On", "off"])
def test_a_word_that_was_a_boolean_is_text_and_warned_of(written: str) -> None:
    """Norway stays a country; the warning stops nothing, and quotes silence it."""
    node, problems = _read(f"a: {written}\n{written}: '{written}'")
    assert node is not None
    assert node.plain() == {"a": written, written: written}
    assert [(p.code, p.severity, p.path, p.line, p.column) for p in problems] == [
        ("looks_boolean", Severity.WARNING, "a", 1, 4)
    ]


@pytest.mark.parametrize("written", [".inf", "-.Inf", ".NaN", "9223372036854775808", "-0" + "9" * 400, "1e999"])
def test_a_number_that_json_cannot_hold_is_refused(written: str) -> None:
    """Infinities and what needs more than 64 bits have no place in JSON."""
    problem = _only(f"a: {written}")
    assert problem.code in {"not_finite", "number_too_large"}
    assert problem.path == "a"
    assert "quote" in problem.hint


def test_a_key_is_the_text_as_written() -> None:
    """Keys have no other type than text."""
    assert _plain("1: a\n~: b\n010: c\ntrue: d\n'': e") == {"1": "a", "~": "b", "010": "c", "true": "d", "": "e"}


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("a: !!python/object/apply:os.system [ls]", "!!python/object/apply:os.system"),
        ("a: !!str 5", "!!str"),
        ("a: !foo {b: 1}", "!foo"),
        ("a: ! b", "!"),
    ],
)
def test_tags_are_refused(text: str, tag: str) -> None:
    """Nothing in a text chooses a type, least of all one of Python."""
    problem = _only(text)
    assert _place(problem) == ("tag", 1, 4)
    assert f" {tag} " in problem.message


def test_a_tag_of_an_unknown_handle_is_refused_as_a_tag() -> None:
    """It stops the reading, because PyYAML stops."""
    assert _only("a: !foo!bar x").message == "tags are not allowed"


def test_anchors_and_aliases_are_refused_each_at_its_place() -> None:
    """The reading goes on after each."""
    _, problems = _read("a: &x 1\nb: *x\nc: [*x]\n? *x\n: 2")
    assert [_place(problem) for problem in problems] == [
        ("anchor", 1, 4),
        ("alias", 2, 4),
        ("alias", 3, 5),
        ("alias", 4, 3),
    ]
    assert "write the value out" in problems[0].hint


def test_merge_keys_are_refused() -> None:
    """Only where they would merge: in quotes it is a key like others."""
    problem = _only("<<: {a: 1}\nb: 2")
    assert _place(problem) == ("merge_key", 1, 1)
    assert _plain("'<<': 1") == {"<<": 1}


def test_a_duplicate_key_is_refused_with_both_positions() -> None:
    """The first one counts for what is checked next; problems inside the second are still found."""
    node, problems = _read("a:\n  id: 1\n  id: {x: !t 2}\n")
    assert node is not None
    assert node.plain() == {"a": {"id": 1}}
    assert [_place(problem) for problem in problems] == [("duplicate_key", 3, 3), ("tag", 3, 11)]
    assert problems[0].message == 'the key "id" is already used at line 2, column 3'
    assert problems[0].path == "a.id"


def test_lists_and_mappings_cannot_be_keys() -> None:
    """What follows is read all the same."""
    node, problems = _read("? [a, {b: c}]\n: d\n? {e: f}\n: [g]\nh: 1")
    assert node is not None
    assert node.plain() == {"h": 1}
    assert [_place(problem) for problem in problems] == [("key_not_text", 1, 3), ("key_not_text", 3, 3)]


def test_several_documents_in_one_text_are_refused() -> None:
    """The place is where the second begins."""
    assert _place(_only("--- {a: 1}\n---\nb: 2")) == ("several_documents", 2, 1)
    assert _plain("---\na: 1\n...\n") == {"a": 1}


@pytest.mark.parametrize("text", ["", " \n\t\n", "# only a comment\n", b"\xef\xbb\xbf"])
def test_an_empty_text_is_a_problem(text: str | bytes) -> None:
    """There is nothing to give."""
    assert _only(text).code == "empty"


def test_byte_order_marks_and_windows_line_ends_do_not_matter() -> None:
    """Texts of several lines get plain breaks."""
    text = b"\xef\xbb\xbfa: 1\r\nb: |\r\n  x\r\n  y\r\nc: 'NO'\r\nc: 2\r\n"
    node, problems = _read(text)
    assert node is not None
    assert node.plain() == {"a": 1, "b": "x\ny\n", "c": "NO"}
    assert _place(problems[0]) == ("duplicate_key", 6, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a: 1\nb: \xff", ("not_utf8", 2, 4)),
        ("a: 1".encode("utf-16"), ("not_utf8", 1, 1)),
        ("é: \ud800", ("character", 1, 4)),
        ("a: 1\nb: x\0y", ("character", 2, 5)),
        ("a: \x1b[31m", ("character", 1, 4)),
        ("a: \x7f", ("character", 1, 4)),
        ("a: 1\nb: x\u2028y", ("character", 2, 5)),
        ("\ufeff\ufeffa: 1", ("character", 1, 1)),
        ('["\\ud800"]', ("character", 1, 2)),
        ('{"a\\u0000": 1}', ("character", 1, 2)),
        ('a: "x\\0y"', ("character", 1, 4)),
    ],
)
def test_what_is_not_text_is_refused_with_its_place(text: str | bytes, expected: tuple[str, int, int]) -> None:
    """Bytes that are not UTF-8, control characters and halves of surrogate pairs, escaped or not."""
    assert _place(_only(text)) == expected


@pytest.mark.parametrize(
    ("text", "message", "hint", "line", "column"),
    [
        ("a: b: c", "a colon and a space are not expected here", "quote the text", 1, 5),
        ("a:\n\tb: 1", "the line is indented with a tab", "indent with spaces", 2, 1),
        ("a:\n  b: 1\n\tc: 2", "the line is indented with a tab", "indent with spaces", 3, 1),
        ("cron: @daily", "a value cannot start with @ unless it is quoted", "write '@…'", 1, 7),
        ("cron: */5 * * * *", "a value cannot start with * unless it is quoted", "write '*…'", 1, 7),
        ("a: [1,2", "expected , or ]", "", 1, 4),
        ("a: {b: ${c}}\n", "expected , or }", "quote the text", 1, 9),
        ("a: 'x\nb: 1\n", "in quotes is not closed", "written twice", 1, 4),
        ('a: "\\q"', "a backslash", "single quotes", 1, None),
        ("a:\n  b: 1\n c: 2", "this does not continue", "indentation", 3, 2),
        ("- a\nb: 1", "this does not continue", "indentation", 2, 1),
        ("a: - b", "a list cannot start with - on this line", "on a new line", 1, 4),
        ("a: ]", "a value is expected here", "quote", 1, 4),
        ("Workflow:\n  id:x\n  jobs: []", "a colon", "a space may be missing after the colon of id", 3, 7),
        ("a: 1\nb\nc: 2", "this line is neither a key", "write key: value", 3, 1),
        ("dag:\n  - IF a ? b : c: d", "a colon and a space", "quote the whole condition", 2, 17),
        ("k" * 1025 + ": 1", "a colon and a space", "at most 1024 characters", 1, 1026),
        ("'a': 1\nb: 'x' y", "this does not continue", "quotes on this line", 2, 8),
        ("%YAML 3.0\n---\na", "found incompatible YAML document", "", 1, 1),
    ],
)
def test_a_syntax_error_says_what_is_wrong_and_what_to_do(
    text: str, message: str, hint: str, line: int, column: int | None
) -> None:
    """In words for people, whichever parser found it."""
    problem = _only(text)
    assert problem.code == "syntax"
    assert message in problem.message
    assert hint in problem.hint
    assert problem.line == line
    assert column in {None, problem.column}


def test_json_is_read_whatever_the_file_is_called() -> None:
    """Pairs of surrogates, tabs and keys without a space after the colon are fine."""
    text = '{"a":[1,-2.5e3,true,null,{}],\n\t"b" : "\\ud83d\\ude00\\/", "c": [ ], "d": {"e": "NO"}}'
    expected: dict[str, Any] = {"a": [1, -2500.0, True, None, {}], "b": "😀/", "c": [], "d": {"e": "NO"}}
    assert _plain(text) == _plain(text, "workflow.json") == _plain(text.encode(), "request") == expected
    node, _ = _read(text)
    assert node is not None
    assert node.at(("d", "e")).mark == Mark(2, 47)
    assert node.at(("d", "e")).key_mark == Mark(2, 42)
    assert _plain('"x"', "a.json") == "x"


def test_json_may_hold_line_separators() -> None:
    """To JSON they are characters like others; YAML has to escape them."""
    assert _plain('["x\u2028y\x85"]') == ["x\u2028y\x85"]
    assert _plain('a: "\\u2028"') == {"a": "\u2028"}


def test_json_has_the_same_rules_as_yaml() -> None:
    """No key twice, no number that is none, no depth without end."""
    _, problems = _read('{"a": 1, "a": [NaN, -Infinity, 99999999999999999999]}', "a.json")
    assert [problem.code for problem in problems] == ["duplicate_key", "not_finite", "not_finite", "number_too_large"]
    assert _only("[" * 60 + "]" * 60, "a.json").code == "too_deep"


def test_a_text_in_braces_that_is_not_json_is_yaml() -> None:
    """Unless the file's name says that it is JSON."""
    assert _plain("{a: b, c: [d]}") == {"a": "b", "c": ["d"]}
    assert _plain("[a, b]") == ["a", "b"]
    assert _only("{a: b}", "a.JSON").message == "expected a key in double quotes or }, not a"


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ('{"a" 1}', "expected a colon, not 1", 6),
        ('{"a": 1 "b": 2}', 'expected , or }, not "', 9),
        ("[1 2]", "expected , or ], not 2", 4),
        ("[1,]", "expected a value, not ]", 4),
        ('{"a": 1, }', "expected a key in double quotes, not }", 10),
        ('{"a": ', "the text ends where a value is expected", 7),
        ("[", "the text ends where a value or ] is expected", 2),
        ("[] x", "expected the end of the text, not x", 4),
        ("[01]", "expected a value or ], not 0", 2),
        ("[tru]", "expected a value or ], not t", 2),
        ('["a\n"]', "this text is not closed on its line", 2),
        ('["\\q"]', "invalid \\escape in this text", 3),
    ],
)
def test_a_fault_of_json_says_what_was_expected(text: str, message: str, column: int) -> None:
    """And where."""
    problem = _only(text, "a.json")
    assert problem.code == "syntax"
    assert message in problem.message
    assert (problem.line, problem.column) == (1, column)
    assert ("remove the comma" in problem.hint) is (text in {"[1,]", '{"a": 1, }'})


def test_a_broken_text_in_braces_is_explained_by_what_came_further() -> None:
    """As JSON if it looks like JSON, as YAML if not."""
    assert _only('{"a": [1,, 2]}').message == "expected a value, not ,"
    assert "expected , or ]" in _only("[a, b").message


def test_each_alias_of_a_billion_laughs_is_refused() -> None:
    """Aliases are not followed, so nothing grows."""
    lines = ["a: &a [lol,lol,lol,lol,lol,lol,lol,lol,lol]"]
    lines += [f"{c}: &{c} [{','.join([f'*{b}'] * 9)}]" for b, c in zip("abcdefg", "bcdefgh", strict=True)]
    _, problems = _read("\n".join(lines))
    assert {problem.code for problem in problems} == {"anchor", "alias"}
    assert len(problems) == 8 + 63


def test_a_bomb_that_is_walked_is_refused() -> None:
    """A list that holds itself never comes to be."""
    node, problems = _read("&a [*a, &b {x: *b}]")
    assert node is not None
    assert node.plain() == [None, {"x": None}]
    assert [problem.code for problem in problems] == ["anchor", "alias", "anchor", "alias"]


@pytest.mark.parametrize("text", ["[" * 20_000 + "]" * 20_000, "- " * 20_000 + "x", "[a, " * 20_000])
def test_a_list_20_000_levels_deep_is_refused_at_level_51(text: str) -> None:
    """The rest is not looked at."""
    problem = _only(text)
    assert problem.code == "too_deep"
    assert problem.path.count("[") == 50


def test_a_document_may_be_50_deep() -> None:
    """Not one level less."""
    assert _plain("[" * 50 + "]" * 50) == _plain("- " * 49 + "[]")


def test_a_text_of_2_mb_is_refused_for_its_size() -> None:
    """Bytes count, not characters."""
    assert _only("a: " + "9" * 2_000_000).code == "too_large"
    assert _only(b"a: " + b"9" * 2_000_000).code == "too_large"
    assert _only("é" * 600_000).code == "too_large"


def test_a_number_of_20_000_digits_is_refused_unread() -> None:
    """Whole or not."""
    assert "20000 characters" in _only("a: " + "9" * 20_000).message
    assert "20002 characters" in _only("[0." + "9" * 20_000 + "]").message


def test_20_000_keys_are_fine() -> None:
    """None of them is compared with all others."""
    expected = {f"k{number}": number for number in range(20_000)}
    assert _plain("\n".join(f"{key}: {value}" for key, value in expected.items())) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" + "1," * 100_000 + "1]", "too_many_values"),
        ("a: " + "x" * 250_001, "text_too_long"),
        ("? " + "x" * 1025 + "\n: 1", "key_too_long"),
        ("{" + ": {".join(f'"{letter * 1000}"' for letter in "abcdefghijkl") + ": {}" + "}" * 12, "path_too_long"),
    ],
)
def test_what_is_too_large_is_refused(text: str, code: str) -> None:
    """Many values, long texts, long keys, long ways."""
    assert _only(text).code == code


def test_a_text_with_too_many_problems_is_abandoned() -> None:
    """A hundred are enough to work on."""
    _, problems = _read("a: 1\n" * 5000)
    assert len(problems) == 101
    assert {problem.code for problem in problems} == {"duplicate_key", "too_many_problems"}


def test_warnings_are_no_reason_to_give_up() -> None:
    """A list of countries has many, and they too end at a hundred."""
    node, problems = _read("[" + "NO, " * 500 + "!t SE]")
    assert node is not None
    assert [problem.code for problem in problems] == ["looks_boolean"] * 100 + ["tag"]
