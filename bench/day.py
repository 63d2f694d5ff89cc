"""A simulated day of workflows that start by themselves, whose scheduler dies every hour: does each firing happen once?

    .venv/bin/python bench/day.py --timed 1600 --watching 400 --hours 24 --store sqlite

``--store`` is ``sqlite`` (a file in a temporary folder), ``postgres`` (a server of its own) or the URL of an empty
database. The clock is moved by hand; at each simulated hour the scheduler is abandoned at a point of its work that
chance chooses, and another one takes over some simulated minutes later. What was started by time is held against a list
that was made minute by minute, without calve's own schedules; what was started by changes of tables must have taken
each change once. Prints firings, deaths, what is missing and what came twice (nothing), and how many a second.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.simulated_day import HOUR, MINUTE, Day, expected, is_once, watching, workflows

from calve.store import open_store
from calve.testing.postgres import throwaway_postgres

MIDNIGHT = int(datetime(2026, 6, 15, tzinfo=UTC).timestamp() * 1_000)


@contextmanager
def store_url(wanted: str, folder: Path) -> Iterator[str]:
    if wanted == "postgres":
        with throwaway_postgres() as made:
            yield made.url
    else:
        yield f"sqlite:///{folder}/calve.db" if wanted == "sqlite" else wanted


def simulate(url: str, given: argparse.Namespace) -> int:
    """Let the day pass; return how many firings are wrong."""
    chance, until = random.Random(7), MIDNIGHT + given.hours * HOUR
    timed, watched = workflows(given.timed, chance), watching(given.watching, chance, MIDNIGHT, until)
    with open_store(url) as store:
        day = Day(store, url, MIDNIGHT)
        day.push([*timed, *watched])
        begin = time.monotonic()
        day.live(until, step=given.step * MINUTE)
        took = time.monotonic() - begin
        fired, wanted = day.fired(), expected(timed, MIDNIGHT, until)
        taken = {each: day.taken(each) for each in watched}
    missing, too_many = (wanted - fired).total(), (fired - wanted).total()
    wrong = sum(not is_once(each, ranges, until) for each, ranges in taken.items())
    changes = sum(len(ranges) for ranges in taken.values())
    print(f"{len(timed)} by time, {len(watched)} by tables, {given.hours} simulated hours, {day.deaths} deaths")
    print(f"{fired.total()} + {changes} firings in {took:.1f} s: {(fired.total() + changes) / took:.0f} a second")
    print(f"missing: {missing}, too many: {too_many}, workflows with a change lost or taken twice: {wrong}")
    return missing + too_many + wrong


def main() -> int:
    """Take the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timed", type=int, default=1_600)
    parser.add_argument("--watching", type=int, default=400)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--step", type=int, default=1, help="the shortest step of the clock, in minutes")
    parser.add_argument("--store", default="sqlite")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, store_url(given.store, Path(folder)) as url:
        return 1 if simulate(url, given) else 0


if __name__ == "__main__":
    sys.exit(main())
