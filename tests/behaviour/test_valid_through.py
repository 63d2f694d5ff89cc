"""Tables that say through which time they are complete, on real tables and both databases."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines import Playground

from calve.engine import RunStatus, StepStatus, params_from_stored
from calve.errors import LakeError, RequestInvalid
from calve.lake import Lake, TableCommit
from calve.settings import load
from calve.testing import PyIcebergWriter
from calve.triggers import Scheduler, TriggerType
from calve.triggers.signals import (
    Signals,
    SignalTriggers,
    ValidThrough,
    moment_of,
    set_valid_through,
    valid_through as watching,
)

STEP = """
Workflow:
  id: w
  RUN_TS: 1000
  jobs: [{job: {id: a, type: NoOp, signal_dependencies: [{table: db.t, valid_through: '${RUN_TS}'}]}}]
"""
TRIGGER = """
Trigger: {valid_through: db.t}
Workflow:
  id: w
  '!through<long>': params.getFromSignal('VALID_THROUGH')
  jobs: [{job: {id: a, type: NoOp}}]
"""


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Give a lake with an empty table db.t."""
    settings = load(tmp_path, {})
    writer, opened = PyIcebergWriter(settings), Lake(settings)
    writer.create("db.t", {"id": "long", "day": "int"}, days=True)
    yield opened
    writer.close()
    opened.close()


@pytest.fixture
def watcher(playground: Playground, lake: Lake) -> ValidThrough:
    """Give what looks at the tables that someone waits for."""
    return ValidThrough(lake, playground.state, playground.clock, 0.01)


def test_a_step_waits_until_its_table_is_complete_through_a_time(
    playground: Playground, lake: Lake, watcher: ValidThrough
) -> None:
    """The table's property says so."""
    playground.push(STEP)
    run = playground.start()
    for through, told in [(None, []), (999, [999]), (999, []), (998, []), (1_000, [1_000])]:
        if through is not None:
            set_valid_through(lake, "db.t", str(through))
        assert [signal.params["through"] for signal in watcher.poll()] == told
        playground.settle()
        is_over = playground.fresh(run).status is RunStatus.SUCCEEDED
        assert is_over is (through == 1_000)
    (dependency,) = playground.attempt(run, "a").dependencies
    assert dependency["params"] == {"through": 1_000}


def test_a_later_step_finds_what_was_told(playground: Playground, lake: Lake, watcher: ValidThrough) -> None:
    """Without another look at the table."""
    playground.push(STEP)
    playground.start()
    set_valid_through(lake, "db.t", "1970-01-01T00:00:02Z")
    watcher.poll()
    playground.settle()
    assert playground.start().status is RunStatus.SUCCEEDED
    assert watcher.poll() == []


def test_a_table_that_is_complete_through_a_later_time_starts_a_workflow(
    playground: Playground, lake: Lake, watcher: ValidThrough
) -> None:
    """Once for each time, however many look; the run knows the time."""
    kind = SignalTriggers(playground.state)
    scheduler = Scheduler(playground.tools, playground.store.triggers, {TriggerType.SIGNAL: kind})
    playground.push(TRIGGER)
    another = ValidThrough(lake, playground.state, playground.clock, 1)
    for through in (5, 6, 6, 4, 7):
        set_valid_through(lake, "db.t", str(through))
        for _ in range(3):
            scheduler.turn()
            watcher.poll()
            another.poll()
        playground.settle()
    runs = playground.state.instances(workflow_id="w")
    assert sorted(params_from_stored(run.params)["through"].result for run in runs) == [5, 6, 7]


def test_nothing_is_examined_that_nobody_waits_for(
    lake: Lake, watcher: ValidThrough, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No catalog is asked."""
    set_valid_through(lake, "db.t", "5")
    monkeypatch.delattr(Lake, "catalog")
    assert watcher.poll() == []


def test_a_table_that_cannot_be_examined_does_not_hold_up_others(
    playground: Playground, lake: Lake, watcher: ValidThrough
) -> None:
    """It may be missing, or be no table at all."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: NoOp, signal_dependencies: [{table: db.t, valid_through: 1}]}
    - job: {id: b, type: NoOp, signal_dependencies: [{table: db.missing, valid_through: 1}]}
    - job: {id: c, type: NoOp, signal_dependencies: [{table: 'a..b', valid_through: 1}]}
""")
    run = playground.start()
    set_valid_through(lake, "db.t", "5")
    assert [signal.name for signal in watcher.poll()] == ["vtts/db.t"]
    playground.settle()
    assert playground.statuses(run)["a"] is StepStatus.SUCCEEDED
    assert playground.statuses(run)["b"] is StepStatus.WAITING_FOR_SIGNALS


def test_a_property_that_is_not_a_time_is_reported_once(
    playground: Playground, lake: Lake, watcher: ValidThrough, caplog: pytest.LogCaptureFixture
) -> None:
    """Until it changes."""
    playground.push(STEP)
    playground.start()
    name = lake.parse("db.t")
    lake.catalog(name.catalog).change(name, lambda _: TableCommit(properties={watching.PROPERTY: "soon"}))
    assert (watcher.poll(), watcher.poll()) == ([], [])
    assert caplog.text.count("'soon' is not a time") == 1


def test_an_unavailable_catalog_is_polled_again(
    playground: Playground, lake: Lake, watcher: ValidThrough, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says then counts."""
    playground.push(STEP)
    playground.start()
    set_valid_through(lake, "db.t", "5")
    catalog = lake.catalog(lake.parse("db.t").catalog)

    def away(_: object) -> None:
        raise LakeError("The catalog is away.")

    with monkeypatch.context() as patched:
        patched.setattr(catalog, "locations", away)
        assert watcher.poll() == []
    assert len(watcher.poll()) == 1


def test_it_polls_until_it_is_told_to_stop(
    playground: Playground, lake: Lake, watcher: ValidThrough, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong."""
    playground.push(STEP)
    playground.start()
    set_valid_through(lake, "db.t", "5")
    stop = threading.Event()
    errors: list[Exception] = [RequestInvalid("no"), ValueError("never")]
    awaited = playground.state.awaited_signals

    def failing(prefix: str) -> list[str]:
        if errors:
            raise errors.pop()
        stop.set()
        return awaited(prefix)

    monkeypatch.setattr(playground.state, "awaited_signals", failing)
    watcher.run(stop)
    assert Signals(playground.state, playground.clock).latest("vtts/db.t").params == {"through": 5}


@pytest.mark.parametrize(
    ("text", "moment"),
    [("5", 5), ("-5", -5), (" 5 ", 5), ("1970-01-01T00:00:01Z", 1_000), ("1970-01-01T01:00:00+01:00", 0)],
)
def test_a_time_is_milliseconds_or_iso(text: str, moment: int) -> None:
    """With a zone."""
    assert moment_of(text) == moment


@pytest.mark.parametrize("text", ["", "soon", "1970-01-01", "1970-01-01T00:00:00"])
def test_a_time_without_a_zone_is_none(text: str) -> None:
    """Nobody knows which time it means."""
    with pytest.raises(RequestInvalid, match="is not a time"):
        moment_of(text)
