"""The step types that there are, and what can be asked of them."""

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.unit.definition.placing import only, placed
from tests.unit.definition.step_types.steps import step

from calve.definition.model import Params, ParamType
from calve.definition.problems import Problems
from calve.definition.step_types import STEP_TYPES, Field, Output, StepType, StepTypes, load_step_types, registry, stub
from calve.definition.step_types.step_type import DYNAMIC

TYPES = StepTypes()


class _Templates:
    def step_type(self, name: str, version: str | None = None) -> str | None:
        return {("audit", None): "SQL", ("audit", "2"): "Spark"}.get((name, version))

    def names(self) -> Iterable[str]:
        return ("audit",)

    def workflow_names(self) -> Iterable[str]:
        return ("incremental",)


def test_a_type_is_found_whatever_its_case() -> None:
    """Maestro's DSL does not look at case either."""
    assert TYPES.resolve("spark") == "Spark"
    assert TYPES.resolve("IPCAPTURE") == "IpCapture"
    assert TYPES.resolve("nope") is None


def test_a_type_tells_its_config_map_and_fields() -> None:
    """So that the forms know what stands inside it."""
    assert TYPES.config("ipcommit") == ("ip_commit", frozenset({"capture_step", "capture"}))
    assert TYPES.config("NoOp") is None
    assert TYPES.config("nope") is None
    assert TYPES["Spark"].config == "spark"


def test_the_names_are_those_that_a_job_may_have() -> None:
    """Composites, refused types and internals are no types of a job; job templates are."""
    names = StepTypes(templates=_Templates()).names()
    assert {"NoOp", "Spark", "ICDC", "audit"} <= set(names)
    assert not {"foreach", "subworkflow", "while", "template", "Titus", "Join"} & set(names)


def test_a_job_template_gives_its_step_type() -> None:
    """By name and version; nothing is known where there are no templates."""
    types = StepTypes(templates=_Templates())
    assert types.template("audit", None) == "SQL"
    assert types.template("audit", "2") == "Spark"
    assert TYPES.template("audit") is None
    assert not set(TYPES.names()) & {"audit"}


def test_a_workflow_template_as_the_type_of_a_job_is_told_how_to_write_it() -> None:
    """Its name is right, its place is not."""
    problems = Problems()
    StepTypes(templates=_Templates()).check(step("incremental"), problems)
    assert only(problems).hint == "write - template: {type: incremental, …}"


def test_installed_packages_add_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is an entry point that leads to a StepType."""
    own = StepType("Dbt", "Runs dbt.")
    point = EntryPoint("dbt", "somewhere:DBT", registry.ENTRY_POINTS)
    monkeypatch.setattr(EntryPoint, "load", lambda _: own)
    monkeypatch.setattr(registry, "entry_points", lambda *, group: [point] if group == point.group else [])
    assert load_step_types() == STEP_TYPES | {"Dbt": own}


def _every_field(fields: Iterable[Field]) -> Iterable[Field]:
    for item in fields:
        yield item
        yield from _every_field(item.fields)


@pytest.mark.parametrize("name", STEP_TYPES)
def test_a_declaration_is_whole(name: str) -> None:
    """Docs are sentences, names are unique, defaults are among the choices, groups name fields."""
    declared = STEP_TYPES[name]
    assert declared.name == name
    fields = list(_every_field((*declared.fields, *declared.params)))
    for item in fields:
        assert item.doc.endswith(".")
        assert not (item.required and item.default is not None)
        for value in item.default if isinstance(item.default, list) else [item.default]:
            assert not item.choices or value is None or value in item.choices
    names = [item.name for item in declared.fields]
    assert len(set(names)) == len(names)
    assert {name for choose in declared.choose for name in choose.names} <= set(names)
    assert bool(declared.fields) == (declared.config is not None)


def _outputs(node: Any, **kind: str) -> dict[str, ParamType]:
    return {name: output.type for name, output in TYPES.outputs(node, **kind).params.items()}


def test_outputs_are_declared_with_types() -> None:
    """An unknown type may give anything."""
    assert _outputs(step("Http")) == {"status_code": ParamType.LONG, "response_body": ParamType.STRING}
    assert _outputs(step(None), kind="foreach") == {"loop_index": ParamType.LONG}
    assert TYPES.outputs(step("Nope")).is_open
    assert not TYPES.outputs(step("NoOp")).is_open
    assert TYPES.outputs(placed({})).is_open


def test_what_is_fetched_depends_on_fetch() -> None:
    """A reference may mean any of them."""
    assert set(_outputs(step("SQL", sql={"query": "x"}))) == {"row_count"}
    assert set(_outputs(step("SQL", sql={"fetch": "row"}))) == {"row_count", "row"}
    of_spark = {"row_count", "published", "branch"}
    assert set(_outputs(step("Spark", spark={"fetch": "${x}"}))) == {*of_spark, "value", "row", "rows"}
    assert repr(DYNAMIC) == "${…}"


def test_stubs_are_params_that_fit_the_model() -> None:
    """A dry run uses them in the place of outputs."""
    node = step("IpCapture", ip_capture={"source_tables": ["a.x", "b.y"], "range_columns": ["day"]})
    stubs = TYPES.stubs(node)
    assert stubs["changed"] == {"type": "BOOLEAN", "value": True}
    assert stubs["x"]["value"]["icdc_table"] == {"type": "STRING", "value": "icdc.stub"}
    for kind in ParamType:
        if kind is not ParamType.SECRET:
            assert stub(Output("o", kind, "An output."))["type"] == kind.value
    assert TypeAdapter(Params).validate_python(stubs)


def test_a_type_that_is_not_known_declares_nothing() -> None:
    """One that is known is found whatever its case."""
    assert StepTypes().find("spark") is STEP_TYPES["Spark"]
    assert StepTypes().find("Nope") == StepType("Nope", "")
