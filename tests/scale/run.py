"""Kills parts of the house at random, while rows go through it, until every place was struck often enough."""

import random
import time
from collections.abc import Callable
from pathlib import Path

from tests.scale.house import SCHEDULERS, SERVERS, House, Member, house
from tests.scale.strikes import Place, Tally, struck_by
from tests.scale.work import work

_OTHERS = (
    *(f"scheduler{number}" for number in range(1, SCHEDULERS + 1)),
    *(f"server{number}" for number in range(1, SERVERS + 1)),
    *("spark", "postgres", "catalog", "storage"),
)
_LOOK_SECONDS = 0.005
_AIM_SECONDS = 20
_WAIT = {Place.CAPTURE: 0.3, Place.WRITE: 1.5, Place.PUBLISH: 0.05, Place.COMMIT: 0.1, Place.IDLE: 1.0}
"""How long a kill waits at most when its place is reached, so that it strikes anywhere in it."""


def run(folder: Path, each: int, seed: int, say: Callable[[str], None]) -> Tally:
    """Run until each place was struck ``each`` times, then compare the tables with the truth; return what was struck.

    Raises:
        AssertionError: a row is missing or doubled.
    """
    tally, chance = Tally(each), random.Random(seed)
    say("starting PostgreSQL, S3, a REST catalog, a Spark cluster, schedulers, servers and workers")
    with house(folder) as made, work(made.direct) as rows:
        rows.append()
        rows.wait()
        say("the first rows went all the way; the kills begin")
        while (wanted := tally.wanted) is not None:
            rows.append()
            _strike(made, wanted, tally, chance, say)
        rows.append()
        rows.wait()
        say(f"{len(rows.rows)} rows went all the way; instances that were restarted by hand: {rows.restarts}")
    return tally


def _strike(made: House, wanted: Place, tally: Tally, chance: random.Random, say: Callable[[str], None]) -> None:
    """Wait until a worker is where a strike is wanted, then kill that worker, or something that all share."""
    worker = _aimed(made, wanted, chance)
    if worker is None:
        return  # nobody came by: rows are appended again
    victim = worker.name if chance.random() < 0.7 else chance.choice(_OTHERS)
    time.sleep(chance.uniform(0, _WAIT[wanted]))
    aside = [place for each in made.workers if (place := made.place(each)) is not None]
    if not made.strike(victim):
        return
    # A dead worker tells by its log where it was; the others were where they were just before.
    places = [made.place(worker)] if victim == worker.name else aside
    kind = victim.rstrip("0123456789")
    struck = struck_by(kind, (place for place in places if place is not None))
    tally.count(kind, struck)
    say(f"killed {victim}: {', '.join(sorted(struck)) or 'unknown'}; {_left(tally)}")


def _aimed(made: House, wanted: Place, chance: random.Random) -> Member | None:
    deadline = time.monotonic() + _AIM_SECONDS
    while time.monotonic() < deadline:
        for worker in chance.sample(made.workers, k=len(made.workers)):
            if made.place(worker) is wanted:
                return worker
        time.sleep(_LOOK_SECONDS)
    return None


def _left(tally: Tally) -> str:
    return ", ".join(f"{place} {tally.by_place(place)}/{tally.each}" for place in Place)
