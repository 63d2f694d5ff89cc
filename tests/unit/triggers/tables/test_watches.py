"""Whose checkpoints tell what is uncommitted, read from definitions."""

import pytest

from calve.capture import OnGap, Operation
from calve.definition import installed, load
from calve.definition.model import IncrementalTrigger, Workflow
from calve.errors import ParamError
from calve.lake import TableName
from calve.triggers.tables import ChangeRules
from calve.triggers.tables.watches import EVERYTHING, TableWatch, rules_of, watches_of


def _parse(text: str) -> TableName:
    return TableName.parse(text, ("lake", "other"), "db")


def _workflow(jobs: str) -> Workflow:
    text = f"Workflow:\n  id: w\n  jobs:\n{jobs}"
    return load(text, name="test", vocabulary=installed()).required().workflow


def _watches(jobs: str, *tables: str) -> list[TableWatch]:
    return list(watches_of(_workflow(jobs), IncrementalTrigger(source_tables=tables or ("db.t",)), _parse))


_T = _parse("db.t")
_CAPTURE = "    - job: {id: c, type: IpCapture, ip_capture: {source_tables: [db.t]}}\n"


def test_a_capture_step_keeps_the_checkpoint() -> None:
    """Go by the consumer that the step will be, and by the operations that it takes."""
    (watch,) = _watches(_CAPTURE)
    assert (watch.table, watch.consumer) == (_T, "w/c")
    assert watch.wanted.operations == {Operation.APPEND}
    assert watch.wanted.start is None


def test_names_are_compared_as_tables() -> None:
    """Find the step that writes the same table in another way."""
    assert [watch.consumer for watch in _watches(_CAPTURE, "t", "lake.db.t")] == ["w/c"]


def test_a_step_may_name_its_consumer() -> None:
    """Go by the consumer that is written, also inside a foreach."""
    step = "{id: c, type: IpCapture, ip_capture: {source_tables: db.t, consumer: me}}"
    assert [watch.consumer for watch in _watches(f"    - job: {step}\n")] == ["me"]
    loop = f"    - foreach: {{id: f, params: {{x: [1, 2]}}, steps: [{{job: {step}}}]}}\n"
    assert [watch.consumer for watch in _watches(loop)] == ["me"]
    assert [watch.consumer for watch in _watches(loop.replace(", consumer: me", ""))] == [None]


def test_all_that_a_step_says_is_taken_over() -> None:
    """Capture as the step would."""
    fields = "source_tables: {a: db.t, b: db.o}, data_operations: [append, delete], initial: latest, on_gap: full"
    (watch,) = _watches(f"    - job: {{id: c, type: IpCapture, ip_capture: {{{fields}, until: tagged}}}}\n")
    wanted = watch.wanted
    assert wanted.operations == {Operation.APPEND, Operation.DELETE}
    assert (wanted.start, wanted.end, wanted.on_gap) == ("latest", "tagged", OnGap.FULL)


def test_what_is_known_only_in_a_run_stands_for_anything() -> None:
    """Take no end and any start where the step has references."""
    fields = 'source_tables: db.t, until: "${RUN_TS}", initial: "${x}"'
    (watch,) = _watches(f"    - job: {{id: c, type: IpCapture, ip_capture: {{{fields}}}}}\n")
    assert (watch.consumer, watch.wanted.end) == ("w/c", None)
    assert watch.wanted.start is not None


@pytest.mark.parametrize(
    "jobs",
    [
        "    - job: {id: n, type: NoOp}\n",
        "    - job: {id: c, type: IpCapture, ip_capture: {source_tables: [db.other]}}\n",
        '    - job: {id: c, type: IpCapture, ip_capture: {source_tables: ["${x}"]}}\n',
        '    - job: {id: c, type: IpCapture, ip_capture: {source_tables: db.t, consumer: "${x}"}}\n',
    ],
)
def test_without_such_a_step_the_trigger_keeps_its_own_mark(jobs: str) -> None:
    """Name no consumer where no step is known to take the table."""
    assert _watches(jobs) == [TableWatch(_T, None, EVERYTHING)]


def test_an_icdc_step_counts_too() -> None:
    """Go by the older form of a capture."""
    step = "{id: c, type: ICDC, icdc: {source_table: db.t, target_table: db.icdc}}"
    assert [watch.consumer for watch in _watches(f"    - job: {step}\n")] == ["w/c"]


def test_each_table_has_its_own_step() -> None:
    """Watch a table once for each step that takes it, and others by a mark."""
    second = "    - job: {id: d, type: IpCapture, ip_capture: {source_tables: [db.t, db.o]}}\n"
    found = _watches(_CAPTURE + second, "db.t", "db.o", "db.x")
    assert [(watch.table.name, watch.consumer) for watch in found] == [
        ("t", "w/c"),
        ("t", "w/d"),
        ("o", "w/d"),
        ("x", None),
    ]


def test_rules_are_read_from_the_definition() -> None:
    """Turn durations into milliseconds."""
    trigger = IncrementalTrigger(source_tables=("t",), min_files=2, min_bytes=3, max_delay="1h", debounce=30)
    assert rules_of(trigger) == ChangeRules(2, 3, 3_600_000, 30_000)
    assert rules_of(IncrementalTrigger(source_tables=("t",))) == ChangeRules()


def test_rules_that_make_no_sense_are_refused() -> None:
    """Name what is wrong."""
    with pytest.raises(ParamError):
        rules_of(IncrementalTrigger(source_tables=("t",), max_delay="soon"))


def test_operations_are_those_of_captures() -> None:
    """A compaction starts nothing, so that nobody can ask for it."""
    chosen = IncrementalTrigger(source_tables=("t",), data_operations=("append", "overwrite", "delete"))
    assert rules_of(chosen).operations == set(Operation) - {Operation.REPLACE}


def test_an_operation_that_is_none_is_reported_when_it_is_pushed() -> None:
    """Name the words that can stand there."""
    text = "Trigger: {incremental: {source_tables: t, data_operations: replace}}\nWorkflow: {id: w, jobs: []}"
    problem = load(text, name="test", vocabulary=installed()).problems[0]
    assert problem.path.endswith("data_operations")
    assert "'replace'" in problem.message
    assert "overwrite" in problem.hint
