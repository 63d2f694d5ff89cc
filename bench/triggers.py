"""What does it cost to watch a thousand tables, and how soon does a change start a workflow?

Run by ``make bench``. Makes tables with PyIceberg in an embedded lake, one workflow for each that it starts on change,
and lets the schedulers and the watcher of ``calve scheduler`` run as they are, at the default interval of 15 seconds.
Printed are the processor time of that process as a share of one core while nothing changes, next to a process that
loads every table through PyIceberg as often, and the time from a commit to the start of its workflow.
"""

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from calve.app import Project, open_project
from calve.definition import installed, load
from calve.lake import Lake
from calve.settings import Settings, load as load_settings
from calve.triggers import TriggerType
from calve.triggers.tables import latency_of

WORKFLOW = """
Trigger: {{incremental: {table}}}
Workflow:
  id: {name}
  dag: sequential
  jobs:
    - job: {{id: capture, type: IpCapture, ip_capture: {{source_tables: [{table}]}}}}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
"""


def name_of(number: int) -> str:
    """Return the name of a table."""
    return f"bench.t{number:05d}"


def make_tables(settings: Settings, number: int) -> None:
    """Make empty tables."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    lake = Lake(settings)
    catalog = lake.catalog(lake.default_catalog).pyiceberg()
    catalog.create_namespace_if_not_exists("bench")
    for each in range(number):
        catalog.create_table(name_of(each), Schema(NestedField(1, "id", LongType())))
    lake.close()


def append(settings: Settings, number: int) -> None:
    """Add a row to a table."""
    import pyarrow as pa

    lake = Lake(settings)
    table = lake.catalog(lake.default_catalog).pyiceberg().load_table(name_of(number))
    table.append(pa.table({"id": pa.array([number], pa.int64())}))
    lake.close()


def push(project: Project, number: int) -> None:
    """Push a workflow for each table."""
    for each in range(number):
        table = name_of(each)
        text = WORKFLOW.format(table=table, name=table.replace(".", "_"))
        project.engine.push(load(text, name="bench", vocabulary=installed()).required())


def processor_seconds() -> float:
    """Return how much processor time this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def share_while_idle(seconds: float) -> float:
    """Return how much of one core this process uses, its other threads going on."""
    before, begun = processor_seconds(), time.monotonic()
    time.sleep(seconds)
    return (processor_seconds() - before) / (time.monotonic() - begun)


def begun(project: Project) -> int:
    """Return how many triggers have been looked at."""
    found, after = 0, ("", "")
    while page := project.store.triggers.triggers(kind=TriggerType.INCREMENTAL, after=after, limit=1_000):
        found += sum(trigger.is_begun and trigger.due_at is None for trigger in page)
        after = (page[-1].workflow_id, page[-1].trigger_id)
    return found


def latencies(project: Project, settings: Settings, changes: int) -> list[float]:
    """Change tables at all times between two polls, and return how many seconds later each workflow was started."""
    interval = settings.triggers.table_interval.total_seconds()
    found = []
    for each in range(changes):
        time.sleep(interval * each / changes)
        append(settings, each)
        until = time.monotonic() + 120
        while not (runs := project.engine.state.instances(workflow_id=name_of(each).replace(".", "_"))):
            if time.monotonic() > until:
                raise SystemExit(f"{name_of(each)} changed, and nothing was started")
            time.sleep(0.05)
        found.append((latency_of(runs[0]) or 0) / 1_000)
    return found


def watch(folder: Path, number: int, seconds: float, changes: int, answers: "multiprocessing.Queue[Any]") -> None:
    """Be ``calve scheduler``, and tell what that costs."""
    settings = load_settings(folder, {})
    with open_project(settings) as project:
        push(project, number)
        stop = threading.Event()
        threads = [threading.Thread(target=each.run, args=(stop,)) for each in project.background_services()]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        while begun(project) < number:
            time.sleep(0.5)
        took = time.monotonic() - start
        share = share_while_idle(seconds)
        soon = latencies(project, settings, changes)
        stop.set()
        project.engine.state.wake()
        for thread in threads:
            thread.join()
    answers.put({"begin_seconds": took, "share": share, "latencies": soon})


def load_all(folder: Path, number: int, seconds: float, interval: float, answers: "multiprocessing.Queue[Any]") -> None:
    """Be the plain way: load every table through PyIceberg each time."""
    lake = Lake(load_settings(folder, {}))
    catalog = lake.catalog(lake.default_catalog).pyiceberg()
    seen: dict[str, str] = {}
    rounds = max(1, round(seconds / interval))
    catalog.load_table(name_of(0))  # what is imported and opened once does not count
    before = processor_seconds()
    for _ in range(rounds):
        for each in range(number):
            seen[name_of(each)] = catalog.load_table(name_of(each)).metadata_location
    used = processor_seconds() - before
    lake.close()
    answers.put({"share": used / rounds / interval, "seconds_a_round": used / rounds})


def apart(function: Any, *given: Any) -> dict[str, Any]:
    """Run a function in a process of its own, and return what it tells."""
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[Any] = context.Queue()
    process = context.Process(target=function, args=(*given, answers))
    process.start()
    while answers.empty():
        if not process.is_alive():
            raise SystemExit(f"{function.__name__} has failed")
        time.sleep(0.2)
    found: dict[str, Any] = answers.get()
    process.join()
    return found


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--changes", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="calve-bench-") as name:
        folder = Path(name)
        settings = load_settings(folder, {})
        interval = settings.triggers.table_interval.total_seconds()
        make_tables(settings, given.tables)
        ours = apart(watch, folder, given.tables, given.seconds, given.changes)
        plain = apart(load_all, folder, given.tables, given.seconds, interval)
    found = {"tables": given.tables, "interval_seconds": interval, "calve": ours, "pyiceberg": plain}
    if given.json:
        print(json.dumps(found))
        return
    soon = ours["latencies"]
    print(f"{given.tables:,} watched tables, asked every {interval:g} s, over {given.seconds:g} s")
    print(f"  calve scheduler, nothing changing:     {ours['share']:7.2%} of a core")
    print(f"  load every table through PyIceberg:    {plain['share']:7.2%} of a core")
    print(f"  first look at all triggers:            {ours['begin_seconds']:7.1f} s")
    print(
        f"  from commit to start, {len(soon)} changes:        "
        f"{statistics.median(soon):7.1f} s median, {max(soon):.1f} s most"
    )


if __name__ == "__main__":
    main()
