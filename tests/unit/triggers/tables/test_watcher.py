"""The watcher goes on, whatever goes wrong while it looks."""

import threading
from pathlib import Path

import pytest

from calve.errors import CalveError, LakeError
from calve.lake import Lake
from calve.settings import load
from calve.store import open_store
from calve.triggers.tables import Watcher


@pytest.mark.parametrize("error", [LakeError("away"), ValueError("odd")])
def test_it_polls_again_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Note what went wrong, and look again after the interval, until it is told to stop."""
    stop = threading.Event()
    polls: list[int] = []

    def poll(_: Watcher) -> int:
        polls.append(len(polls))
        if len(polls) == 1:
            raise error
        stop.set()
        return 0

    monkeypatch.setattr(Watcher, "poll", poll)
    lake = Lake(load(tmp_path, {}))
    with open_store(f"sqlite:///{tmp_path}/state.db") as store:
        watcher = Watcher(lake, store.triggers, lambda: 0, interval=0.001)
        watcher.run(stop)
        assert polls == [0, 1]
        with pytest.raises(CalveError, match="does not name a table"):
            watcher.changed("db..t")
    lake.close()
