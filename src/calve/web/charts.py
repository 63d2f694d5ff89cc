"""Small charts as SVG: sparklines, the times of a run, how late rows come, how near consumers are to expiry. Pure.

Like graphs, they have no style of their own but classes, and every text goes through ``Markup.format``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from calve.web.formats import duration, words
from calve.web.graph_svg import clean, clipped
from calve.web.legend import tone_of

Point = tuple[float, float]

_WIDTH, _HEIGHT = 560.0, 190.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 52.0, 10.0, 10.0, 28.0
_NAMES = 150.0
_SMALL = 11.0
_DASHES = 4
_LABEL_ROOM = 88.0  # per cent: a bar that ends behind it has its text before it …
_NAME_ROOM = 25.0  # … or inside, if it begins before this
_THINNEST = 0.4

_SPARKLINE = Markup(
    '<svg class="sparkline" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
    'aria-label="{label}"><title>{label}</title><polyline points="{points}"/></svg>'
)
_CHART = Markup(
    '<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{label}"><title>{label}</title>'
    "{content}</svg>"
)
_TEXT = Markup('<text class="{kind}" x="{x:g}" y="{y:g}">{text}</text>')
_LINE = Markup('<polyline class="line line-{number}" points="{points}"><title>{title}</title></polyline>')
_PATH = Markup('<path class="{kind}" d="{path}"/>')
_SPAN = Markup(
    '<tr><th scope="row"><a href="{href}">{name}</a></th><td><svg class="span tone-{tone}{running}" width="100%" '
    'height="20" role="img" aria-label="{label}"><title>{label}</title>'
    '<rect x="{x:.2f}%" y="3" width="{width:.2f}%" height="14" rx="3"/>'
    '<text class="{side}" x="{at:.2f}%" y="14" dx="{dx}">{text}</text></svg></td></tr>'
)


@dataclass(frozen=True, slots=True)
class Span:
    """When a step ran, in milliseconds; it still runs if it has no end."""

    name: str
    status: str
    start: int
    end: int | None = None
    href: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """How far behind a consumer was, in milliseconds, at some times."""

    name: str
    points: tuple[Point, ...]


def sparkline(values: Sequence[float], *, label: str, width: float = 220.0, height: float = 40.0) -> Markup:
    """Return a line without axes, from 0 up; empty if there are less than two values."""
    if len(values) < 2:
        return Markup("")
    highest = max(*values, 0.0) or 1.0
    step = width / (len(values) - 1)
    points = [(n * step, height - 2 - max(0.0, value) / highest * (height - 6)) for n, value in enumerate(values)]
    return _SPARKLINE.format(width=width, height=height, label=clean(label), points=_points(points))


def run_spans(spans: Iterable[Span], *, now: int) -> Markup:
    """Return the steps of a run as bars over its time; what still runs reaches to now."""
    shown = list(spans)
    begin = min((span.start for span in shown), default=now)
    end = max((span.end or now for span in shown), default=now)
    rows = Markup("").join(_span(span, begin, max(1, end - begin), now) for span in shown)
    return Markup('<table class="spans"><tbody>{}</tbody></table>').format(rows)


def _span(span: Span, begin: int, whole: int, now: int) -> Markup:
    took = max(0, (span.end or now) - span.start)
    x, width = (span.start - begin) / whole * 100, max(_THINNEST, took / whole * 100)
    is_left = x + width > _LABEL_ROOM
    is_inside = is_left and x < _NAME_ROOM
    text = duration(took) + ("" if span.end else " so far")
    return _SPAN.format(
        href=clean(span.href),
        name=clean(span.name),
        tone=tone_of(span.status),
        running="" if span.end else " running",
        label=clean(f"{span.name}: {words(span.status)}, {text}"),
        x=min(x, 100 - _THINNEST),
        width=width,
        side="inside" if is_inside else "before" if is_left else "after",
        at=x if is_left and not is_inside else x + width,
        dx=-6 if is_left else 6,
        text=text,
    )


def lateness(points: Sequence[Point], *, unit: str = "days", window: float | None = None) -> Markup:
    """Return the share of rows (0 to 1) that has come within a time, with a marker at the chosen window."""
    longest = max((x for x, _ in points), default=0.0) or 1.0
    frame = _Frame(0.0, longest, _WIDTH - _RIGHT)
    content = [frame.axes(), _LINE.format(number=0, points=_points(map(frame.at, points)), title="")]
    content += [_text("tick end", _LEFT - 6, _TOP + 4, "100 %"), _text("tick", _LEFT, _HEIGHT - 10, "0")]
    content.append(_text("tick end", _WIDTH - _RIGHT, _HEIGHT - 10, f"{longest:g} {unit} late"))
    label = "Share of rows that have arrived, by how late they are"
    if window is not None:
        missed = f"{window:g} {unit}: {1 - share_within(points, window):.1%} missed".replace("%", " %")
        content.append(frame.marker(min(window, longest), missed))
        label = f"{label}; {missed}"
    return _chart(label, content)


def share_within(points: Sequence[Point], window: float) -> float:
    """Return the share of rows that has come within a time, between two points on the line that joins them."""
    before = max((point for point in points if point[0] <= window), default=(0.0, 0.0))
    after = min((point for point in points if point[0] > window), default=None)
    if after is None:
        return before[1]
    return before[1] + (after[1] - before[1]) * (window - before[0]) / (after[0] - before[0])


def lag_against_expiry(series: Sequence[Series], *, expires_after: float, begin: str = "", end: str = "") -> Markup:
    """Return a chart of how far consumers are behind the newest snapshot, and of the range that expiry may remove.

    Args:
        series: the consumers.
        expires_after: the age in milliseconds from which history may be removed.
        begin: the first time of the samples, in words.
        end: the last one.
    """
    times = [x for one in series for x, _ in one.points] or [0.0]
    deepest = max([expires_after * 1.15, *(y for one in series for _, y in one.points)]) or 1.0
    frame = _Frame(min(times), max(times), _WIDTH - _NAMES)
    limit = frame.at((min(times), 1 - expires_after / deepest))[1]
    content = [_band(limit), frame.axes(), _text("tick end", _LEFT - 6, _TOP + 4, "newest")]
    content.append(_text("tick bad", _LEFT + 4, limit + 12, f"older than {duration(expires_after)}: may be removed"))
    content += [_text("tick", _LEFT, _HEIGHT - 10, begin), _text("tick end", _WIDTH - _NAMES, _HEIGHT - 10, end)]
    for number, one in enumerate(series):
        content += _consumer(frame, number, one, deepest)
    return _chart("How far consumers are behind, and what expiry may remove", content)


def _consumer(frame: "_Frame", number: int, series: Series, deepest: float) -> list[Markup]:
    points = [frame.at((x, 1 - y / deepest)) for x, y in series.points]
    behind = duration(series.points[-1][1]) if series.points else ""
    title = clean(f"{series.name}: {behind} behind")
    line = _LINE.format(number=number % _DASHES, points=_points(points), title=title)
    name = clipped(series.name, _NAMES - 8, _SMALL)
    return [line, _text("name", points[-1][0] + 6, points[-1][1] + 4, name)] if points else []


@dataclass(frozen=True, slots=True)
class _Frame:
    """The rectangle of a chart: ``x`` from ``first`` to ``last``, ``y`` from 0 at the bottom to 1 at the top."""

    first: float
    last: float
    right: float

    def at(self, point: Point) -> Point:
        """Return where a point is drawn."""
        across = (point[0] - self.first) / ((self.last - self.first) or 1.0)
        height = _HEIGHT - _TOP - _BOTTOM
        return _LEFT + across * (self.right - _LEFT), _TOP + (1 - min(1.0, max(0.0, point[1]))) * height

    def axes(self) -> Markup:
        """Return the left and the lower edge."""
        return _PATH.format(kind="axis", path=f"M{_LEFT:g} {_TOP:g}V{_HEIGHT - _BOTTOM:g}H{self.right:g}")

    def marker(self, x: float, text: str) -> Markup:
        """Return a dashed line with a text, on the side that has room for it."""
        place = self.at((x, 0.0))[0]
        is_right = place > (_LEFT + self.right) / 2
        line = _PATH.format(kind="marker", path=f"M{place:g} {_TOP:g}V{_HEIGHT - _BOTTOM:g}")
        return line + _text("tick end" if is_right else "tick", place + (-6 if is_right else 6), _HEIGHT * 0.6, text)


def _band(top: float) -> Markup:
    return _PATH.format(kind="band", path=f"M{_LEFT:g} {top:g}H{_WIDTH - _NAMES:g}V{_HEIGHT - _BOTTOM:g}H{_LEFT:g}z")


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    return _TEXT.format(kind=kind, x=x, y=y, text=clean(text))


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _chart(label: str, content: Iterable[Markup]) -> Markup:
    return _CHART.format(width=_WIDTH, height=_HEIGHT, label=clean(label), content=Markup("").join(content))
