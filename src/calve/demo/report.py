"""The report of a demo: one self-contained HTML page. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from operator import attrgetter

from calve.demo.events import WINDOW
from calve.demo.figures import STAGES, Figure, Lane, Result, Stage, bytes_written, rows_written, seconds
from calve.steps.spark import size

COLUMNS = ("pipeline", "stage", "written", "rows written", "read", "rows read", "seconds")
_MEASURED = ("bytes_written", "rows_written", "bytes_read", "rows_read", "seconds")
_COLOURS = ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8")
_STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1d2733, #e6edf3); --dim: light-dark(#5b6775, #9aa7b4);
  --paper: light-dark(#ffffff, #11161c); --line: light-dark(#dfe4ea, #2b333c); --good: light-dark(#12805c, #3ecf9a);
  --bad: light-dark(#b3261e, #ff8a80); }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 46rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } p.lead { color: var(--dim); margin-top: .3rem; }
.facts { display: flex; flex-wrap: wrap; gap: 2rem; margin: 1.5rem 0; } .facts b { display: block; font-size: 1.9rem; }
.good { color: var(--good); } .bad { color: var(--bad); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
figure { margin: 2rem 0; } figcaption { font-weight: 600; margin-bottom: .4rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 13px; } svg text.after { fill: var(--dim); }
.c1 { fill: light-dark(#8a94a3, #77828f); background: light-dark(#8a94a3, #77828f); }
.c2 { fill: light-dark(#b8c0ca, #4d5762); background: light-dark(#b8c0ca, #4d5762); }
.c3 { fill: light-dark(#0b7fc7, #46a6e6); background: light-dark(#0b7fc7, #46a6e6); }
.c4 { fill: light-dark(#7cc4ee, #1f6d9f); background: light-dark(#7cc4ee, #1f6d9f); }
.c5 { fill: light-dark(#12805c, #3ecf9a); background: light-dark(#12805c, #3ecf9a); }
.c6 { fill: light-dark(#e0a100, #f0c14b); background: light-dark(#e0a100, #f0c14b); }
.c7 { fill: light-dark(#b05cc6, #cf8be0); background: light-dark(#b05cc6, #cf8be0); }
.c8 { fill: light-dark(#d1603d, #ee8d6b); background: light-dark(#d1603d, #ee8d6b); }
.key { list-style: none; padding: 0; display: grid; gap: .15rem; font-size: .9rem; }
.key i { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; margin-right: .5rem; }
"""

_WIDTH = 720
_LEFT = 120
_ROW = 34
_BAR = 22


@dataclass(frozen=True, slots=True)
class Piece:
    """A coloured piece of a bar."""

    colour: str
    """A CSS class of the page."""
    value: float
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of pieces, with a label before and after it."""

    label: str
    pieces: tuple[Piece, ...]
    after: str = ""

    @property
    def value(self) -> float:
        """Its length."""
        return sum(piece.value for piece in self.pieces)


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return a chart of horizontal bars on one scale."""
    longest = max((row.value for row in rows), default=0.0) or 1.0
    scale = (_WIDTH - _LEFT - 110) / longest
    height = len(rows) * _ROW + 6
    drawn = "".join(_drawn(row, at * _ROW + 6, scale) for at, row in enumerate(rows))
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title, quote=True)}">{drawn}</svg></figure>'
    )


def _drawn(row: Bar, top: int, scale: float) -> str:
    middle = top + _BAR * 0.72
    parts = [f'<text x="{_LEFT - 10}" y="{middle:.1f}" text-anchor="end">{escape(row.label)}</text>']
    left = float(_LEFT)
    for piece in row.pieces:
        width = max(piece.value * scale, 0.5)
        parts.append(
            f'<rect class="{piece.colour}" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}" rx="2">'
            f"<title>{escape(piece.title)}</title></rect>"
        )
        left += width
    parts.append(f'<text class="after" x="{left + 8:.1f}" y="{middle:.1f}">{escape(row.after)}</text>')
    return "".join(parts)


def rows(result: Result) -> list[tuple[str, ...]]:
    """Return the rows of the table of figures: one for each pipeline and stage, the sums, and the savings."""
    lines = [
        (lane, stage, *_figures(result.total(lane, stage))) for lane in ("lookback", "incremental") for stage in STAGES
    ]
    sums = [(lane, "both", *_figures(result.total(lane))) for lane in ("lookback", "incremental")]
    shares = [result.ratio(attrgetter(name)) for name in _MEASURED]
    ratio = ("ratio", "", *(f"{share:.1%}" for share in shares))
    saving = ("saving", "", *(f"{1 - share:.1%}" for share in shares))
    return [*lines, *sums, ratio, saving]


def report(result: Result) -> str:
    """Return the page."""
    equal = '<b class="good">equal</b>' if result.is_equal else '<b class="bad">different</b>'
    notes = "".join(f"<li>{escape(note)}</li>" for note in result.notes())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>calve demo</title><style>{_STYLE}</style></head><body>
<h1>Process only what changed</h1>
<p class="lead">The playback pipeline, {len(result.days)} days of {result.rows:,} events, {result.late:.1%} late:
with a lookback of {WINDOW} days, and incrementally.</p>
<div class="facts"><div>{equal}both results, by hash</div>
<div><b>{result.ratio(bytes_written):.1%}</b>of the bytes written</div>
<div><b>{result.ratio(rows_written):.1%}</b>of the rows written</div>
<div><b>{result.capture_seconds() * 1_000:.0f} ms</b>a capture</div>
<div><b>{result.ratio(seconds):.1%}</b>of the time</div></div>
{_table(result)}
<ul class="notes">{notes}</ul>
{_totals("Written, all days", result, bytes_written, size)}
{_totals("Seconds, all days", result, seconds, lambda value: f"{value:.1f} s")}
{_daily(result)}
{_profile(result)}
</body></html>
"""


def _figures(stage: Stage) -> tuple[str, ...]:
    return (
        size(stage.bytes_written),
        f"{stage.rows_written:,}",
        size(stage.bytes_read),
        f"{stage.rows_read:,}",
        f"{stage.seconds:.1f}",
    )


def _table(result: Result) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows(result))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _totals(title: str, result: Result, figure: Figure, shown: Callable[[float], str]) -> str:
    drawn = []
    for lane, colours in (("lookback", _COLOURS[:2]), ("incremental", _COLOURS[2:4])):
        pieces = tuple(
            Piece(colour, value, f"{stage}: {shown(value)}")
            for stage, colour in zip(STAGES, colours, strict=True)
            for value in [figure(result.total(lane, stage))]
        )
        drawn.append(Bar(lane, pieces, shown(sum(piece.value for piece in pieces))))
    return bars(title, drawn)


def _daily(result: Result) -> str:
    drawn = [
        Bar(_label(at, found.date.isoformat()), _piece(lane, colour), f"{lane.total.seconds:.1f} s")
        for found in result.days
        for at, (lane, colour) in enumerate(((found.lookback, "c1"), (found.incremental, "c3")))
    ]
    return bars("Seconds, day by day", drawn)


def _label(at: int, date: str) -> str:
    return date if at == 0 else ""


def _piece(lane: Lane, colour: str) -> tuple[Piece, ...]:
    return (Piece(colour, lane.total.seconds, f"{lane.total.seconds:.1f} s"),)


def _profile(result: Result) -> str:
    """Return the parts of the incremental pipeline's time: the longest ones, and the rest."""
    found = sorted(result.profile(), key=lambda part: -part.seconds)
    shown = [(part.name, part.seconds) for part in found[: len(_COLOURS) - 1]]
    shown.append(("all others", sum(part.seconds for part in found[len(_COLOURS) - 1 :])))
    pieces = tuple(
        Piece(colour, seconds, f"{name}: {seconds:.2f} s")
        for colour, (name, seconds) in zip(_COLOURS[2:] + _COLOURS[:2], shown, strict=False)
    )
    key = "".join(f'<li><i class="{piece.colour}"></i>{escape(piece.title)}</li>' for piece in pieces)
    total = sum(piece.value for piece in pieces)
    chart = bars("Where an incremental day goes", [Bar("a day", pieces, f"{total:.1f} s")])
    return f'{chart}<ul class="key">{key}</ul>'


def headline(result: Result) -> list[str]:
    """Return a summary of the figures in a few lines; the first ones are true at every size."""
    before, after = result.total("lookback"), result.total("incremental")
    written = (
        f"Written: {size(after.bytes_written)} instead of {size(before.bytes_written)} "
        f"({result.ratio(bytes_written):.1%}), {after.rows_written:,} rows instead of {before.rows_written:,} "
        f"({result.ratio(rows_written):.1%})."
    )
    same = f"Both pipelines made the same tables, by a hash over all rows after each of {len(result.days)} days."
    return [
        same if result.is_equal else "The tables of both pipelines DIFFER: this is a bug.",
        written,
        f"A capture took {result.capture_seconds() * 1_000:.0f} ms: it reads metadata, no data.",
        f"Time: {after.seconds:.1f} s instead of {before.seconds:.1f} s ({result.ratio(seconds):.1%}).",
        *result.notes(),
    ]
