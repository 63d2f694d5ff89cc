"""Definitions: what is written is read back the same, and no text whatsoever makes the loader fall over."""

import json
import string
from typing import Any

from hypothesis import given, strategies as st

from calve.definition import Definition, Problems, installed, load, to_json, to_yaml
from calve.definition.forms import canonical
from calve.definition.model import ParamMode, ParamType
from calve.definition.syntax import read
from calve.definition.validation import validated

WORDS = installed()
IDS = st.text(string.ascii_letters, min_size=1, max_size=4).map(lambda text: f"s{text}")
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NAMES = st.text(string.ascii_letters + string.digits + " -_.", min_size=1, max_size=8).map(lambda text: f"n{text}")
LONGS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
LITERALS: dict[ParamType, st.SearchStrategy[Any]] = {
    ParamType.STRING: TEXTS,
    ParamType.LONG: LONGS,
    ParamType.DOUBLE: DOUBLES,
    ParamType.BOOLEAN: st.booleans(),
    ParamType.STRING_MAP: st.dictionaries(TEXTS, TEXTS, max_size=3),
    ParamType.STRING_ARRAY: st.lists(TEXTS, max_size=3),
    ParamType.LONG_ARRAY: st.lists(LONGS, max_size=3),
    ParamType.DOUBLE_ARRAY: st.lists(DOUBLES, max_size=3),
    ParamType.BOOLEAN_ARRAY: st.lists(st.booleans(), max_size=3),
    ParamType.SECRET: TEXTS,
}
DURATIONS = st.one_of(st.integers(1, 10_000), st.sampled_from(["2 hours", "${wait}", "3600"]))


def _sometimes(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


@st.composite
def params(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """A param of any type."""
    more = draw(_sometimes(mode=st.sampled_from(ParamMode).map(str), tags=st.lists(NAMES, max_size=2, unique=True)))
    if draw(st.booleans()):
        return {"type": draw(st.sampled_from(ParamType)).value, "expression": draw(TEXTS), **more}
    kind = draw(st.sampled_from([*LITERALS, ParamType.MAP] if depth else [*LITERALS]))
    value = LITERALS[kind] if kind in LITERALS else st.dictionaries(TEXTS, params(depth - 1), max_size=3)
    return {"type": kind.value, "value": draw(value), **more}


PARAMS = st.dictionaries(IDS, params(), max_size=3)
SIGNALS = st.lists(st.fixed_dictionaries({"name": NAMES, "params": PARAMS}), max_size=2)


@st.composite
def steps(draw: st.DrawFn, ids: list[str], depth: int = 2) -> list[dict[str, Any]]:
    """Steps with these ids, each of which may lead to later ones."""
    made = []
    for index, step_id in enumerate(ids):
        after = draw(st.lists(st.sampled_from(ids[index + 1 :]), max_size=2, unique=True)) if ids[index + 1 :] else []
        step: dict[str, Any] = {
            "id": step_id,
            "transition": {"successors": {target: draw(TEXTS) for target in after}},
            "params": draw(PARAMS),
        }
        step |= draw(_sometimes(name=NAMES, description=TEXTS, timeout=DURATIONS, signal_outputs=SIGNALS))
        kind = draw(st.sampled_from(["step", "subworkflow", "foreach", "while"] if depth else ["step", "subworkflow"]))
        if kind in {"foreach", "while"}:
            inner = [f"{step_id}.{number}" for number in range(draw(st.integers(1, 2)))]
            step["steps"] = draw(steps(inner, depth - 1))
        if kind == "while":
            step["condition"] = draw(TEXTS)
        if kind == "step":
            step |= {"type": draw(NAMES)} | draw(_sometimes(targets=st.lists(TEXTS, max_size=2), sub_type=NAMES))
        made.append({kind: step})
    return made


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    """A definition that the models take, whether or not it makes sense."""
    ids = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    workflow = {"id": draw(IDS), "params": draw(PARAMS), "steps": draw(steps(ids))}
    workflow |= draw(
        _sometimes(name=TEXTS, description=TEXTS, timeout=DURATIONS, tags=st.lists(NAMES, max_size=2, unique=True))
    )
    document = {"workflow": workflow} | draw(
        _sometimes(
            properties=_sometimes(
                owner=st.one_of(NAMES, st.fixed_dictionaries({"name": NAMES, "team": TEXTS})),
                run_strategy=st.one_of(st.sampled_from(["FIRST_ONLY", "parallel"]), st.integers(1, 9)),
                description=TEXTS,
            ),
            is_active=st.booleans(),
            git_info=_sometimes(sha=TEXTS, timestamp=LONGS),
        )
    )
    return Definition.model_validate(document)


def _read(text: str) -> tuple[Definition | None, list[Any]]:
    problems = Problems()
    document = read(text, name="w", problems=problems)
    assert document is not None, [*problems]
    shaped = canonical(document, problems, WORDS.types)
    assert shaped is not None, [*problems]
    return validated(shaped, problems), list(problems.errors)


@given(definitions())
def test_a_definition_written_as_json_is_read_back_the_same(definition: Definition) -> None:
    """Whatever its params hold."""
    assert _read(to_json(definition.as_json(), indent=None)) == (definition, [])


@given(definitions())
def test_a_definition_written_as_yaml_is_read_back_the_same(definition: Definition) -> None:
    """Texts that look like something else, too."""
    assert _read(to_yaml(definition.as_json())) == (definition, [])


@given(definitions())
def test_a_definition_survives_both_ways_one_after_the_other(definition: Definition) -> None:
    """JSON of YAML of JSON."""
    once, _ = _read(to_yaml(json.loads(to_json(definition.as_json(), indent=2))))
    assert once == definition


@given(definitions())
def test_any_definition_is_checked_without_falling_over(definition: Definition) -> None:
    """It is right, or it has problems, each with a place."""
    result = load(to_yaml(definition.as_json()), name="w.yaml", vocabulary=WORDS)
    assert (result.definition is None) == any(problem.severity == "error" for problem in result.problems)
    assert all(problem.line >= 1 and problem.column >= 1 for problem in result.problems)


KEYS = st.sampled_from(
    [
        *("Workflow", "workflow", "id", "jobs", "job", "steps", "step", "foreach", "while", "subworkflow", "template"),
        *("type", "dag", "transition", "params", "loop_params", "ranges", "condition", "Trigger", "cron", "signal"),
        *("incremental", "spark", "script", "ip_capture", "source_tables", "properties", "owner", "run_strategy"),
        *(
            "!x<long>",
            "x(constant)",
            "IF",
            "OTHERWISE",
            "sequential",
            "NoOp",
            "Spark",
            "IpCapture",
            "ICDC",
            "dependsOn",
        ),
    ]
)
JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        LONGS,
        DOUBLES,
        TEXTS,
        KEYS,
        st.sampled_from(["a -> b", "IF x THEN a", "${a}", "1 +", "@daily"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.one_of(KEYS, TEXTS), inner, max_size=4)),
    max_leaves=25,
)


@given(st.one_of(st.text(), st.binary()))
def test_no_text_makes_the_loader_fall_over(text: str | bytes) -> None:
    """Nothing but problems comes of it."""
    assert load(text, name="w.yaml", vocabulary=WORDS).problems


@given(JUNK, st.booleans())
def test_no_document_makes_the_loader_fall_over(document: Any, as_yaml: bool) -> None:  # noqa: FBT001 - from hypothesis
    """Though it uses the words of the language."""
    written = to_yaml(document) if as_yaml else to_json(document, indent=None)
    load(written, name="w", vocabulary=WORDS)
    load(
        to_yaml({"Workflow": {"id": "w", "jobs": [{"job": document}], "x": document, "dag": document}}),
        name="w",
        vocabulary=WORDS,
    )
