"""Logs for people and for programs."""

import json
import logging
from collections.abc import Iterator

import pytest

from calve.engine import current_log_context
from calve.engine.worker import log_context
from calve.settings import LogSettings
from calve.telemetry.logs import set_up

log = logging.getLogger("calve.test")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave the loggers as they were."""
    root, ours = logging.getLogger(), logging.getLogger("calve")
    handlers, level = list(root.handlers), ours.level
    yield
    root.handlers[:] = handlers
    ours.setLevel(level)


def test_json_holds_the_ids_of_the_work_at_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """And whatever else was said, one object a line."""
    set_up(LogSettings(format="json", level="info"))
    with log_context(run="r", attempt=None), log_context(step_id="load"):
        log.info("hello %s", "you", extra={"rows": 3})
    log.debug("unheard")
    try:
        1 / 0  # noqa: B018 - it is to fail
    except ZeroDivisionError:
        log.exception("oh")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info",
        "logger": "calve.test",
        "message": "hello you",
        "run": "r",
        "step_id": "load",
        "rows": 3,
    }
    assert "ZeroDivisionError" in second["error"]
    assert current_log_context() == {}


def test_text_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """However often the log is set up; a traceback stands below it."""
    for _ in range(2):
        set_up(LogSettings())
    with log_context(run="r"):
        log.warning("careful")
    try:
        1 / 0  # noqa: B018 - it is to fail
    except ZeroDivisionError:
        log.exception("oh")
    first, second, *rest = capsys.readouterr().err.splitlines()
    assert first.endswith("WARNING calve.test: careful (run=r)")
    assert second.endswith("ERROR calve.test: oh")
    assert rest[-1] == "ZeroDivisionError: division by zero"


def test_nobody_who_reads_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed standard error is borne."""

    class Closed:
        def write(self, _: str) -> None:
            raise BrokenPipeError

    set_up(LogSettings())
    monkeypatch.setattr("sys.stderr", Closed())
    log.warning("unread")
