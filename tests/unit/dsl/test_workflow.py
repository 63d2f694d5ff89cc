"""A workflow gives a definition, or all that is wrong with it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from calve.definition import Problems, installed
from calve.definition.model import Definition
from calve.definition.problems import MOST
from calve.definition.step_types import StepType, StepTypes
from calve.definition.syntax import read
from calve.dsl import (
    Workflow,
    cron,
    exponential,
    fixed,
    foreach,
    interval,
    ip_capture,
    ip_commit,
    noop,
    retry,
    signal_dependency,
    signal_output,
    spark,
    step,
)
from calve.errors import DefinitionInvalid, RequestInvalid


def _problems(wf: Workflow) -> list[dict[str, Any]]:
    with pytest.raises(DefinitionInvalid) as caught:
        wf.build()
    found: list[dict[str, Any]] = caught.value.context["problems"]
    return found


def test_the_definition_is_written_as_yaml_and_json() -> None:
    """Both read back as the same definition."""
    with Workflow("w", owner="dana") as wf:
        noop("a", text="one\ntwo")
    document = read(wf.to_yaml(), name="w.yaml", problems=Problems())
    assert document is not None
    assert Definition.model_validate(document.plain()) == wf.build()
    assert Definition.model_validate(json.loads(wf.to_json())) == wf.build()
    assert "\n" not in wf.to_json(indent=None)


def test_properties_and_version_are_told_apart() -> None:
    """A description and tags may belong to either."""
    with Workflow(
        "w",
        description="this version",
        properties_description="all versions",
        properties_tags=["p"],
        tags=["v"],
        run_strategy=3,
        access_control={"x": 1},
        git_info={"sha": "abc"},
        extra_info={"k": "v"},
    ) as wf:
        noop("a")
    found = wf.build().as_json()
    assert found["properties"] == {
        "access_control": {"x": 1},
        "run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 3},
        "description": "all versions",
        "tags": ["p"],
    }
    assert (found["workflow"]["description"], found["workflow"]["tags"]) == ("this version", ["v"])
    assert (found["git_info"], found["extra_info"]) == ({"sha": "abc"}, {"k": "v"})


def test_all_problems_are_reported_at_once_each_at_its_line() -> None:
    """The message has a line for each, and the context what machines need."""
    with Workflow("bad id", timeout=1.5) as wf:  # type: ignore[arg-type]
        a = noop("a", x=None)  # type: ignore[arg-type]
        noop("b", failure_mode="SOMETIMES")  # type: ignore[arg-type]
        spark("c")
        a >> "d"
    with pytest.raises(DefinitionInvalid) as caught:
        wf.build()
    found = caught.value.context["problems"]
    first = found[0]["line"]
    assert [(problem["line"] - first, problem["code"]) for problem in found] == [
        (0, "name_malformed"),
        (0, "not_a_duration"),
        (1, "wrong_type"),
        (2, "unknown_word"),
        (3, "missing_field"),
        (4, "unknown_step"),
    ]
    assert {problem["file"] for problem in found} == {__file__}
    head, *lines = caught.value.message.splitlines()
    assert head == "the workflow bad id has 6 problems:"
    assert len(lines) == 6
    assert f"test_workflow.py:{first + 4}: a leads to d, but there is no such step here" in lines[-1]
    assert caught.value.context["workflow"] == "the workflow bad id"


def test_a_part_has_its_own_line() -> None:
    """A trigger, a retry policy and its backoff are found where they are described, not where they are used."""
    policy = retry(
        errors=1.5,  # type: ignore[arg-type]
        backoff=fixed(2.5),  # type: ignore[arg-type]
    )
    trigger = interval(1.5)  # type: ignore[arg-type]
    with Workflow("w", triggers=[trigger]) as wf:
        noop("a", retry_policy=policy)
    lines = [problem["line"] for problem in _problems(wf)]
    assert len(lines) == 5
    assert max(lines) - min(lines) == 4


def test_too_many_problems_end_the_search() -> None:
    """As in YAML, there is a most."""
    with Workflow("w") as wf:
        for number in range(MOST + 5):
            noop(f"a{number}", x=None)  # type: ignore[arg-type]
    assert len(_problems(wf)) == MOST


def test_an_empty_workflow_is_a_problem() -> None:
    """Also one that was never entered."""
    (problem,) = _problems(Workflow("w"))
    assert problem["message"] == "steps cannot be empty"


def test_a_workflow_is_built_after_its_end() -> None:
    """Inside of its ``with`` it is not complete."""
    with Workflow("w") as wf:
        noop("a")
        with pytest.raises(RequestInvalid, match="the workflow w is still being described"):
            wf.build()


def test_a_workflow_is_described_once() -> None:
    """A second ``with`` for it is refused, also inside of the first."""
    with Workflow("w") as wf:
        with pytest.raises(RequestInvalid, match="the workflow w has already been described"), wf:
            pass
        noop("a")
    with pytest.raises(RequestInvalid, match=r"test_workflow\.py:\d+: the workflow w has already been described"), wf:
        pass


def test_an_error_inside_ends_the_description() -> None:
    """What comes after it is outside again."""
    with pytest.raises(ZeroDivisionError), Workflow("w"), foreach("loop", loop_params={"i": [1]}):
        _ = 1 / 0
    with pytest.raises(RequestInvalid):
        noop("a")


class _Scripts:
    def read(self, path: str) -> str | None:
        return {"my_script.sql": "SELECT 1"}.get(path)


def test_a_workflow_is_loaded_like_a_text() -> None:
    """With its scripts read, and warnings at their lines."""
    with Workflow("w") as wf:
        spark("a", script="$S3{my_script.sql}")
        ip_capture("b", source_tables=["db.t"])
    loaded = wf.load(scripts=_Scripts())
    assert loaded.name == __file__
    found = loaded.required().as_json()["workflow"]["steps"][0]["step"]["params"]["spark"]["value"]
    assert found == {"script": {"type": "STRING", "value": "SELECT 1"}}
    (warning,) = loaded.problems
    assert (warning.code, warning.severity) == ("capture_uncommitted", "warning")
    assert "$S3{my_script.sql}" in wf.to_yaml()


def test_a_commit_that_does_not_stand_behind_the_work_is_refused() -> None:
    """At the line that describes it, as in a text."""
    with Workflow("w") as wf:
        change = ip_capture("change", source_tables=["db.t"])
        job = spark("job", script=f"INSERT INTO d SELECT * FROM {change['relation']}")
        change >> [job, ip_commit("commit", capture_step=change)]
    (error,) = wf.load().problems
    assert (error.code, error.hint) == ("commit_before_use", "add the edge job -> commit")
    with pytest.raises(DefinitionInvalid):
        wf.build()


def test_loading_raises_nothing() -> None:
    """What is wrong is told, and the words that there are may be given."""
    with Workflow("w") as wf:
        step("Mine", "a")
    loaded = wf.load()
    assert loaded.definition is None
    assert [problem.code for problem in loaded.problems] == ["unknown_step_type"]
    types = StepTypes({"Mine": StepType("Mine", "Does what I say.")})
    assert wf.load(vocabulary=replace(installed(), types=types)).problems == ()


def test_a_workflow_shows_its_id() -> None:
    """In a debugger, and in the list that a file gives."""
    assert repr(Workflow("w")) == "Workflow('w')"


@pytest.mark.parametrize("schedule", ["@DAILY", " daily ", "Daily"])
def test_words_of_cron_in_any_spelling(schedule: str) -> None:
    """They are predefined schedules."""
    assert cron(schedule).value == {"type": "PREDEFINED", "expression": "@daily"}


def test_signals_may_be_bare() -> None:
    """A name is enough, to wait for one and to send one."""
    assert signal_dependency("s").value == {"name": "s"}
    assert signal_output("s").value == {"name": "s"}


def test_waits_for_each_reason() -> None:
    """One number for all, or one for each."""
    assert fixed(30, platform="1 min").value == {
        "type": "FIXED_BACKOFF",
        "error_retry_backoff_in_secs": 30,
        "platform_retry_backoff_in_secs": "1 min",
        "timeout_retry_backoff_in_secs": 30,
    }
    assert exponential(10, exponent=3, platform=(60, 2, 3600)).value == {
        "type": "EXPONENTIAL_BACKOFF",
        "error_retry_backoff_in_secs": 10,
        "platform_retry_backoff_in_secs": 60,
        "timeout_retry_backoff_in_secs": 10,
        "error_retry_exponent": 3,
        "platform_retry_exponent": 2,
        "timeout_retry_exponent": 3,
        "platform_retry_limit_in_secs": 3600,
    }
    assert retry().value == {}


def test_what_is_not_text_is_refused_with_its_place() -> None:
    """In a value, and in a key."""
    with Workflow("w", x="\ud83d", y={"a": ["\0"]}) as wf:
        noop("a", z={"\udc00": "x"})
    found = {(problem.code, problem.message) for problem in wf.load().problems}
    assert ("character", "this text holds \\ud83d, half of a surrogate pair") in found
    assert ("character", "this text holds \\u0000 (NUL)") in found
    assert ("character", "this key holds \\udc00, half of a surrogate pair") in found
