"""PostgreSQL, a REST catalog, S3, a Spark cluster, schedulers, servers and workers, killed at random."""

from pathlib import Path

import pytest
from tests.scale.run import run
from tests.scale.strikes import Place, Tally, place_of, struck_by
from tests.scope import in_ci

pytestmark = pytest.mark.spark


def test_rows_go_all_the_way_once_whatever_is_killed(tmp_path: Path) -> None:
    """Kills strike captures, writes, publishing, commits and idle workers; both tables hold the truth in the end."""
    each = in_ci(1, otherwise=20)
    said: list[str] = []
    tally = run(tmp_path, each, seed=1, say=said.append)
    assert all(tally.by_place(place) >= each for place in Place), "\n".join(said)


def test_a_kill_counts_only_for_what_it_struck() -> None:
    """A worker publishes from the end of its job until that is recorded; a server has no part in a step."""
    assert place_of(None, ["delivery.published"]) is Place.IDLE
    assert place_of("write", ["delivery.recorded", "delivery.staged", "store.heartbeat.after_commit"]) is Place.WRITE
    assert place_of("write", ["delivery.ready", "store.heartbeat.after_commit"]) is Place.PUBLISH
    assert place_of("write", ["delivery.published", "delivery.noted"]) is Place.WRITE
    assert struck_by("server", [Place.COMMIT]) == {Place.IDLE}
    assert struck_by("spark", [Place.COMMIT, Place.WRITE]) == {Place.WRITE}
    tally = Tally(each=1)
    for place in (Place.CAPTURE, Place.WRITE, Place.PUBLISH, Place.COMMIT):
        tally.count("worker", struck_by("worker", [place]))
    assert tally.wanted is Place.IDLE
    tally.count("server", struck_by("server", []))
    assert tally.wanted is None
    assert tally.report().splitlines()[1].split() == ["server", "0", "0", "0", "0", "1"]
