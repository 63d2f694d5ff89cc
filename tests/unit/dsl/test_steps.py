"""A function for each step type describes a step of it."""

from collections.abc import Callable
from typing import Any

import pytest

from calve import dsl
from calve.dsl import Step, Workflow, noop, spark, step, subworkflow, template
from calve.errors import DefinitionInvalid, RequestInvalid

CONFIGURED: list[tuple[Callable[..., Step], str, str, dict[str, Any]]] = [
    (dsl.shell, "Shell", "shell", {"command": "ls", "success_codes": [0, 1], "env": {"A": 1}}),
    (dsl.python, "Python", "python", {"callable": "pkg.mod:run", "kwargs": {"n": 1, "names": ["a"]}}),
    (dsl.sql, "SQL", "sql", {"connection": "warehouse", "query": "SELECT 1", "fetch": "value"}),
    (dsl.spark, "Spark", "spark", {"script": "SELECT 1", "conf": {"spark.sql.shuffle.partitions": 8}}),
    (dsl.notebook, "Notebook", "notebook", {"input_path": "a.ipynb", "parameters": {"day": 1}}),
    (dsl.java, "Java", "java", {"jar": "a.jar", "jvm_options": ["-Xmx1g"]}),
    (dsl.docker, "Docker", "docker", {"image": "busybox", "command": ["ls"], "cpu": 0.5, "memory": "512m"}),
    (dsl.kubernetes, "Kubernetes", "kubernetes", {"image": "busybox", "cpu": "500m"}),
    (dsl.http, "Http", "http", {"url": "https://example.com", "verify": False}),
    (dsl.approval, "Approval", "approval", {"message": "Go?", "approvers": ["dana"]}),
    (dsl.ip_capture, "IpCapture", "ip_capture", {"source_tables": {"m": "db.members"}, "max_files": 5}),
    (dsl.icdc, "ICDC", "icdc", {"source_table": "db.a", "target_table": "db.b"}),
]


def _step(wf: Workflow, index: int = 0) -> dict[str, Any]:
    (found,) = wf.build().as_json()["workflow"]["steps"][index].values()
    assert isinstance(found, dict)
    return found


def _plain(param: dict[str, Any]) -> Any:
    value = param["value"]
    return {name: _plain(member) for name, member in value.items()} if param["type"] == "MAP" else value


@pytest.mark.parametrize(("function", "type_name", "config", "given"), CONFIGURED, ids=lambda item: str(item)[:12])
def test_keywords_become_the_config_map(
    function: Callable[..., Step], type_name: str, config: str, given: dict[str, Any]
) -> None:
    """The map holds a param for each keyword, whatever the types."""
    with Workflow("w") as wf:
        function("a", **given)
    found = _step(wf)
    assert found["type"] == type_name
    assert found["params"][config]["type"] == "MAP"
    assert _plain(found["params"][config]) == given


def test_what_is_not_told_is_not_there() -> None:
    """A bare step has an id and a type."""
    with Workflow("w") as wf:
        noop("a")
    assert _step(wf) == {"id": "a", "type": "NoOp"}


def test_params_by_keyword_and_by_name() -> None:
    """Names that are keywords, or no names in Python, go into ``params``."""
    with Workflow("w") as wf:
        noop("a", x=1, params={"timeout": "soon", "my-param": True})
    assert _step(wf)["params"] == {
        "timeout": {"type": "STRING", "value": "soon"},
        "my-param": {"type": "BOOLEAN", "value": True},
        "x": {"type": "LONG", "value": 1},
    }


def test_a_param_given_twice_is_a_problem() -> None:
    """By keyword and in ``params``, or beside the config map of the type."""
    with Workflow("w") as wf:
        noop("a", x=1, params={"x": 2})
        spark("b", script="SELECT 1", spark={"script": "SELECT 2"})
        spark("c", script="SELECT 1", params={"spark": {"script": "SELECT 2"}})
    with pytest.raises(DefinitionInvalid) as caught:
        wf.build()
    found = [problem["message"] for problem in caught.value.context["problems"] if problem["code"] == "said_twice"]
    assert found == [f"the param {name} is given twice" for name in ("x", "spark", "spark")]


def test_a_misspelt_keyword_does_not_become_a_param() -> None:
    """A slip of the finger is told; a param that is meant goes into ``params``."""
    with Workflow("w", onwer="dana") as wf:
        noop("a", tmeout=5)
    with pytest.raises(DefinitionInvalid) as caught:
        wf.build()
    found = caught.value.context["problems"]
    assert [problem["message"] for problem in found] == ["onwer looks like owner", "tmeout looks like timeout"]
    assert found[1]["hint"] == 'write params={"tmeout": …} if you mean a param of that name'
    with Workflow("w") as wf:
        noop("a", params={"tmeout": 5})
    assert _step(wf)["params"] == {"tmeout": {"type": "LONG", "value": 5}}


def test_a_step_of_any_type() -> None:
    """``step`` names the type, and a job template."""
    with Workflow("w") as wf:
        step("NoOp", "a", sub_type="my_template", sub_type_version="2", x=1)
    assert _step(wf) == {
        "id": "a",
        "type": "NoOp",
        "sub_type": "my_template",
        "sub_type_version": "2",
        "params": {"x": {"type": "LONG", "value": 1}},
    }


def test_an_unknown_type_is_a_problem() -> None:
    """With what was probably meant."""
    with Workflow("w") as wf:
        step("Sprak", "a")
    with pytest.raises(DefinitionInvalid, match=r"test_steps\.py:\d+: .* step type Sprak .* did you mean Spark\?"):
        wf.build()


def test_a_subworkflow_has_an_id_a_version_and_flags() -> None:
    """A version is a text, also if it is a number; the step's id is the default for the workflow's."""
    with Workflow("w") as wf:
        subworkflow("child", version=3, sync=False, explicit_params=True, SOURCE="x")
        subworkflow("other", workflow_id="some.workflow", version="latest")
    assert _step(wf) == {
        "id": "child",
        "sync": False,
        "explicit_params": True,
        "params": {
            "subworkflow_id": {"type": "STRING", "value": "child"},
            "subworkflow_version": {"type": "STRING", "value": "3"},
            "SOURCE": {"type": "STRING", "value": "x"},
        },
    }
    assert _step(wf, 1)["params"]["subworkflow_version"]["value"] == "latest"


def test_a_template_has_a_version() -> None:
    """One that there is not is a problem."""
    with Workflow("w") as wf:
        template("t", sub_type="incremental", sub_type_version="77")
    with pytest.raises(DefinitionInvalid, match=r"test_steps\.py:\d+: there is no version 77"):
        wf.build()


def test_a_commit_takes_the_capture_or_its_id() -> None:
    """Both give the id."""
    for by_id in (False, True):
        with Workflow("w") as wf:
            change = dsl.ip_capture("change", source_tables="db.t")
            change >> dsl.ip_commit("commit", capture_step="change" if by_id else change)
        expected = {"capture_step": "change", "capture": "${change.capture_id}"}
        assert _plain(_step(wf, 1)["params"]["ip_commit"]) == expected


def test_a_step_outside_of_a_workflow_is_refused() -> None:
    """The error names the line and says what to do."""
    with pytest.raises(RequestInvalid, match=r"test_steps\.py:\d+: the step a is outside of every workflow") as caught:
        noop("a")
    assert caught.value.remedy == "Describe it inside `with Workflow(…):`."
    assert caught.value.context["file"] == __file__


def test_the_same_id_twice_is_a_problem() -> None:
    """At the line of the second, which keeps no edges of the first."""
    with Workflow("w") as wf:
        noop("a") >> noop("b")
        noop("a")
    with pytest.raises(DefinitionInvalid) as caught:
        wf.build()
    (problem,) = caught.value.context["problems"]
    assert problem["code"] == "duplicate_step"
