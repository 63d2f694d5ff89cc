"""How much does incremental processing save? The playback pipeline of the examples, both ways, at some size.

Run by ``make bench-playback``: half an hour on two cores. Fourteen days of events are made and processed once; then
another day arrives in each round, with late events of the days before, and both pipelines process it, in alternating
order, on one warm Spark with the same settings. After each round the tables of both must be equal. Prints medians over
the rounds, the share of the captures, and where the time of the incremental pipeline goes.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from calve.app import WorkerThread, open_project
from calve.cli.interrupts import STOPPED, counted
from calve.demo import LANES, STAGES, WINDOW, Day, Playback, Result, Runs, Shape, report, settings_in
from calve.demo.figures import bytes_written, seconds
from calve.settings import load
from calve.steps.spark import size

ORDERS = (LANES, LANES[::-1])
FIGURES = ("seconds", "rows_read", "bytes_read", "rows_written", "bytes_written")


def measured(options: argparse.Namespace, folder: Path) -> Result:
    """Run the rounds; what they take is told on standard error."""
    began = time.perf_counter()

    def tell(text: str) -> None:
        click.echo(f"{time.perf_counter() - began:7.1f} s  {text}", err=True)

    with (
        counted() as signals,
        open_project(settings_in(folder, load(), driver_memory=options.memory)) as project,
        WorkerThread(project) as worker,
    ):
        runs = Runs(project.engine, worker, lambda: signals() > 0)
        playback = Playback(runs, project.lake, Shape(options.rows, options.late), tell, days=options.days)
        playback.prepare()
        days = tuple(playback.play(number, ORDERS[number % 2]) for number in range(options.rounds))
        tell("done")
        return Result(options.rows, options.late, days)


def medians(result: Result) -> dict[str, Any]:
    """Return the median round of each pipeline, and what one is of the other."""
    found: dict[str, Any] = {stage or "total": _stage_medians(result, stage) for stage in (*STAGES, None)}
    return {**found, "capture_share": round(statistics.median(_capture_share(day) for day in result.days), 4)}


def _stage_medians(result: Result, stage: str | None) -> dict[str, Any]:
    def of(lane: str, figure: str) -> float:
        stages = [one.total if stage is None else one.stages[stage] for one in result.lane(lane)]
        return statistics.median(float(getattr(one, figure)) for one in stages)

    lanes = {lane: {figure: round(of(lane, figure), 3) for figure in FIGURES} for lane in LANES}
    return {
        **lanes,
        "ratio": round(result.median_ratio(seconds, stage), 4),
        "ratio_bytes_written": round(result.median_ratio(bytes_written, stage), 4),
    }


def _capture_share(day: Day) -> float:
    total = day.incremental.total
    return total.capture_seconds / total.seconds


def show(result: Result, found: dict[str, Any]) -> None:
    """Print the medians, the rounds and the profile."""
    print(
        f"\n{result.rows:,} events a day, lookback of {WINDOW} days, {result.late:.1%} late, {len(result.days)} rounds"
    )
    print(f"results equal after each round: {'yes' if result.is_equal else 'NO'}\n")
    lanes = f"{'lookback':>12}{'incremental':>14}{'ratio':>8}"
    print(f"{'':<12}{'median seconds':>34}{'bytes written':>34}\n{'':<12}{lanes}{lanes}")
    for name in (*STAGES, "total"):
        line = found[name]
        before, after = line["lookback"], line["incremental"]
        print(
            f"{name:<12}{before['seconds']:>10.1f} s{after['seconds']:>12.1f} s{line['ratio']:>8.3f}"
            f"{size(before['bytes_written']):>12}{size(after['bytes_written']):>14}{line['ratio_bytes_written']:>8.3f}"
        )
    print(f"\ncaptures: {found['capture_share']:.2%} of the incremental pipeline\n\nwhere a round of it goes:")
    parts = result.profile()
    total = sum(part.seconds for part in parts)
    for part in sorted(parts, key=lambda part: -part.seconds):
        print(f"  {part.seconds:>8.2f} s {part.seconds / total:>7.1%}  {part.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="events a day")
    parser.add_argument("--days", type=int, default=WINDOW, help="days that are there before the first round")
    parser.add_argument("--rounds", type=int, default=3, help="days that both pipelines process")
    parser.add_argument("--late", type=float, default=0.03, help="late events, as a part of those in time")
    parser.add_argument("--memory", default="8g", help="of Spark's driver")
    parser.add_argument("--report", type=Path, help="write the demo's HTML report there, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="calve-bench-") as folder:
        try:
            result = measured(options, Path(folder))
        except KeyboardInterrupt:
            raise SystemExit(STOPPED) from None
    found = medians(result)
    if options.report:
        options.report.write_text(report(result), encoding="utf-8")
    if options.json:
        print(json.dumps({**result.as_json(), "medians": found}))
    else:
        show(result, found)
    if not result.is_equal:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
