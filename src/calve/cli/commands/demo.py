"""``calve demo``: the playback pipeline with a lookback window and incrementally, side by side."""

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from calve.app import WorkerThread
from calve.cli.demo_project import clear, tidy, view_of
from calve.cli.interrupts import counted
from calve.cli.output import print_json, print_table
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from calve.demo import Result
    from calve.settings import Settings

_LANES = ("lookback", "incremental")
_PREPARING = 6
_A_DAY = 6
"""The steps of the progress bar: while the tables are created, and on each day."""


@click.command()
@click.option("--rows", default=100_000, show_default=True, type=click.IntRange(min=100), help="Events a day.")
@click.option("--days", default=2, show_default=True, type=click.IntRange(1, 60), help="Days that both pipelines run.")
@click.option(
    "--late",
    default=0.03,
    show_default=True,
    type=click.FloatRange(0, 0.5),
    metavar="FRACTION",
    help="Late events, as a fraction of those on time.",
)
@click.option(
    "--keep/--no-keep", default=True, show_default=True, help="Keep the demo's lake and state, to see in the browser."
)
@json_option
@click.pass_obj
def demo(state: State, rows: int, days: int, late: float, *, keep: bool) -> int:
    r"""Run a pipeline with a lookback window and incrementally, and show what the latter saves.

    \b
      calve demo
      calve demo --rows 500000 --days 5

    Two workflows clean and aggregate generated playback events each way, day by day; some events are late, some arrive
    twice. Both ways must give the same tables. The demo runs on this machine, in a project of its own, <home>/demo,
    which every run replaces; your lake is not touched. The report with charts is <home>/demo/report.html. The last
    line says how to see its runs in the browser.

    Ctrl-C stops it, including Spark.
    """
    from calve.demo import COLUMNS, headline, report, rows as lines, settings_in

    home = state.settings.home / "demo"
    settings = settings_in(home, state.settings)
    clear(settings)
    result, shown = _played(settings, rows, days, late, is_quiet=state.json)
    page = home / "report.html"
    page.write_text(report(result), encoding="utf-8")
    view = view_of(settings, shown) if keep else None
    if not keep:
        tidy(home)
    if state.json:
        print_json({**result.as_json(), "report": str(page), "view": view})
    else:
        print_table(COLUMNS, lines(result))
        for line in headline(result):
            click.echo(line)
        click.echo(f"Report: {page}")
        if view is not None:
            click.echo(f"To see its runs in the browser: {view['command']}\nThen open {view['url']}")
    return 0 if result.is_equal else 1


def _played(settings: "Settings", rows: int, days: int, late: float, *, is_quiet: bool) -> "tuple[Result, str]":
    """Run both pipelines; return the figures, and the page of a run."""
    from calve.app import open_project
    from calve.demo import LANES, Playback, Result, Runs, Shape

    with (
        counted() as signals,
        open_project(settings) as project,
        _shown(_PREPARING + days * _A_DAY, is_quiet=is_quiet) as shown,
        WorkerThread(project) as worker,
    ):
        runs = Runs(project.engine, worker, lambda: signals() > 0)
        playback = Playback(runs, project.lake, Shape(rows, late), shown.tell)
        playback.prepare()
        result = Result(rows, late, ())
        for number in range(days):
            found = playback.play(number, LANES if number % 2 == 0 else LANES[::-1])
            result = Result(rows, late, (*result.days, found))
            shown.compare(result)
        return result, playback.page


@dataclass(frozen=True, slots=True)
class _Shown:
    """Shows the progress of the demo, and compares the time of both pipelines so far."""

    tell: "Callable[[str], None]"
    compare: "Callable[[Result], None]"


@contextmanager
def _shown(total: int, *, is_quiet: bool) -> "Iterator[_Shown]":
    """Yield the functions that show the progress: as bars on a terminal, otherwise as lines; nothing if quiet."""
    if not is_quiet and sys.stderr.isatty():
        with _bars(total) as shown:
            yield shown
    else:
        yield _Shown(lambda text: None if is_quiet else click.echo(text, err=True), lambda _: None)


@contextmanager
def _bars(total: int) -> "Iterator[_Shown]":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    words = TextColumn("{task.description}")
    with Progress(TextColumn("{task.fields[name]:>12}"), BarColumn(), words, console=Console(stderr=True)) as progress:
        whole = progress.add_task("", total=total, name="demo")
        lanes = {lane: progress.add_task("", total=1, name=lane, visible=False) for lane in _LANES}
        told = 0

        def tell(text: str) -> None:
            nonlocal told
            progress.update(whole, description=text, completed=told)
            told += 1

        def compare(result: "Result") -> None:
            took = {lane: result.total(lane).seconds for lane in _LANES}
            for lane, task in lanes.items():
                words = f"{took[lane]:.1f} s, day {len(result.days)}"
                progress.update(task, total=max(took.values()), completed=took[lane], description=words, visible=True)

        yield _Shown(tell, compare)
        progress.update(whole, description="done", completed=total)
