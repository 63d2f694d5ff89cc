"""What does a production lake cost beside the embedded one? The incremental playback pipeline on both, in CPU seconds.

One after the other: SQLite and a local Spark; a REST catalog, an S3 server and a Spark cluster of a master and two
workers, all on this machine. Each plays some days after the first ones; the CPU seconds are those of all processes,
servers included, while the incremental pipeline runs: the median of the days. The aim is a ratio of at most 1.3 at
250,000 events a day.

    .venv/bin/python -m bench.lakes
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.services.iceberg_rest import throwaway_rest
from tests.services.s3 import throwaway_s3
from tests.services.spark_cluster import spark_cluster

from calve.app import WorkerThread, open_project
from calve.demo import LANES, Playback, Runs, Shape, settings_in
from calve.lake import java
from calve.settings import CatalogSettings, Settings, load

LAKES = ("embedded", "production")
AIM, LATE = 1.3, 0.03
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, its descendants, and those that they have waited for."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15])) / _TICKS
    mine, new = set[int](), {os.getpid()}
    while new:
        mine |= new
        new = {pid for pid, parent in parents.items() if parent in new}
    return sum(used[pid] for pid in mine)


@contextmanager
def settings_of(lake: str, folder: Path) -> Iterator[Settings]:
    """Yield the settings of a lake, whose servers run as long as the block."""
    embedded = settings_in(folder, load(folder, {}), driver_memory="4g")
    if lake == "embedded":
        yield embedded
        return
    with ExitStack() as stack:
        s3 = stack.enter_context(throwaway_s3())
        keys = s3.properties
        of_java = {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.path-style-access": "true",
            "client.region": keys["s3.region"],
            **{key: text for key, text in keys.items() if key != "s3.region"},
        }
        rest = stack.enter_context(throwaway_rest(f"{s3.make_bucket('lake')}/warehouse", of_java))
        (folder / "cluster").mkdir()
        home = java.find(embedded.spark.java_home).home
        master = stack.enter_context(spark_cluster(folder / "cluster", home, memory="2g"))
        catalog = CatalogSettings.model_validate({"type": "rest", "uri": rest.uri, **keys})
        conf = embedded.spark.conf | {"spark.executor.memory": "1536m", "spark.driver.host": "localhost"}
        spark = embedded.spark.model_copy(update={"master": master, "conf": conf})
        yield embedded.model_copy(update={"catalogs": {embedded.default_catalog: catalog}, "spark": spark})


def played(lake: str, rows: int, days: int, rounds: int) -> list[float]:
    """Return the CPU seconds of each day of the incremental pipeline on a lake."""
    spent: dict[str, float] = defaultdict(float)
    last: list[tuple[str, float]] = []

    def tell(text: str) -> None:
        now = cpu_seconds()
        if last:
            spent[last[-1][0]] += now - last[-1][1]
        last.append((text, now))
        sys.stderr.write(f"{time.strftime('%H:%M:%S')}  {lake}: {text}\n")

    with (
        tempfile.TemporaryDirectory(prefix="calve-bench-") as folder,
        settings_of(lake, Path(folder)) as settings,
        open_project(settings) as project,
        WorkerThread(project) as worker,
    ):
        playback = Playback(
            Runs(project.engine, worker, lambda: False), project.lake, Shape(rows, LATE), tell, days=days
        )
        playback.prepare()
        found = [playback.play(number, LANES) for number in range(rounds)]
        tell("done")
        if not all(day.is_equal for day in found):
            raise SystemExit(f"{lake}: the results differ")
    return [
        sum(seconds for text, seconds in spent.items() if text.startswith(f"{day.date}: incremental")) for day in found
    ]


def main() -> None:
    """Measure, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=250_000, help="events a day")
    parser.add_argument("--days", type=int, default=14, help="days that are there before the first one")
    parser.add_argument("--rounds", type=int, default=5, help="days that are measured")
    parser.add_argument("--lake", choices=LAKES, help="only this one, as JSON")
    given = parser.parse_args()
    if given.lake:
        print(json.dumps(played(given.lake, given.rows, given.days, given.rounds)))
        return
    found = {}
    for lake in LAKES:  # in a process of its own, so that what one has left in memory does not help the other
        command = [sys.executable, "-m", "bench.lakes", *sys.argv[1:], "--lake", lake]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
        found[lake] = json.loads(said.stdout)
        print(f"{lake:<12}{statistics.median(found[lake]):8.1f} CPU s a day; days: {found[lake]}")
    ratio = statistics.median(found["production"]) / statistics.median(found["embedded"])
    print(f"ratio {ratio:.2f} (aim: at most {AIM})")


if __name__ == "__main__":
    main()
