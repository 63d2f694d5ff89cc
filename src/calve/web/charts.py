"""Small charts as SVG: sparklines, the steps of a run over time, lateness of rows, lag against expiry. Pure.

The SVG has classes instead of styles, because the Content-Security-Policy of the pages forbids ``style``. Every text
goes through ``Markup.format``, which escapes it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from markupsafe import Markup

from calve.web.formats import clock, duration, words
from calve.web.graph_svg import clean, clipped
from calve.web.legend import tone_of

Point = tuple[float, float]

_WIDTH, _HEIGHT = 560.0, 190.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 52.0, 10.0, 10.0, 28.0
_NAMES, _NAME_HEIGHT = 150.0, 13.0
_SMALL = 11.0
_DASHES = 4
_LABEL_ROOM = 88.0  # per cent: the text of a bar that ends further right is drawn to the left of the bar …
_NAME_ROOM = 25.0  # … or inside the bar, if the bar starts further left than this
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
    """The time in which a step ran, in milliseconds; ``end`` is None while the step is running."""

    name: str
    status: str
    start: int
    end: int | None = None
    href: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """The position of a consumer in a table over time: pairs of sample time and position, both in milliseconds."""

    name: str
    points: tuple[Point, ...]


def sparkline(values: Sequence[float], *, label: str, width: float = 220.0, height: float = 40.0) -> Markup:
    """Return a line without axes, on a scale from 0; empty if there are fewer than two values."""
    if len(values) < 2:
        return Markup("")
    highest = max(*values, 0.0) or 1.0
    step = width / (len(values) - 1)
    points = [(n * step, height - 2 - max(0.0, value) / highest * (height - 6)) for n, value in enumerate(values)]
    return _SPARKLINE.format(width=width, height=height, label=clean(label), points=_points(points))


def run_spans(spans: Iterable[Span], *, now: int) -> Markup:
    """Return the steps of a run as bars on a common time axis; the bar of a running step ends at ``now``."""
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


def lateness(
    curve: Sequence[tuple[float, float, float]], *, unit: str = "days", lookback: float = 0, missed: str = ""
) -> Markup:
    """Return a chart of the share of rows that have arrived, by how late they are, with a marker at a lookback.

    Args:
        curve: each lateness, with the minimum and the maximum share (0 to 1) of rows that have arrived by then.
        unit: the unit of lateness.
        lookback: the position of the marker.
        missed: the share of rows that the lookback misses, as text; no marker if empty.
    """
    longest = max((x for x, _, _ in curve), default=0.0) or 1.0
    frame = _Frame(0.0, longest, _WIDTH - _RIGHT)
    least = _steps([frame.at((x, share)) for x, share, _ in curve])
    most = _steps([frame.at((x, share)) for x, _, share in curve])
    content = [_area([*most, *reversed(least)]), frame.axes()]
    content += [_LINE.format(number=0, points=_points(line), title="") for line in (least, most)]
    content += [_text("tick end", _LEFT - 6, _TOP + 4, "100 %"), _text("tick", _LEFT, _HEIGHT - 10, "0")]
    content.append(_text("tick end", _WIDTH - _RIGHT, _HEIGHT - 10, f"{longest:.3g} {unit} late"))
    label = "Share of rows that have arrived, by how late they are"
    if missed:
        text = f"{lookback:g} {unit}: {missed} missed"
        content.append(frame.marker(min(lookback, longest), text))
        label = f"{label}; {text}"
    return _chart(label, content)


def _steps(points: Sequence[Point]) -> list[Point]:
    """Return the points of a step curve, which stays level up to the next point."""
    corners = ((then[0], before[1]) for before, then in pairwise(points))
    return [points[0], *chain.from_iterable(zip(corners, points[1:], strict=True))] if points else []


def lag_against_expiry(series: Sequence[Series], current: Sequence[Point], *, expires_after: float) -> Markup:
    """Return a chart of consumers' positions in a table over time, and of the history that expiry may remove.

    Both axes are times in milliseconds: x is the time of the sample, y the time of the position in the table.

    Args:
        series: the positions of the consumers.
        current: the newest snapshot at the time of each sample.
        expires_after: the age from which expiry may remove snapshots.
    """
    removable = band_of(current, expires_after)
    points = [*current, *removable, *(point for one in series for point in one.points)] or [(0.0, 0.0)]
    times, heights = zip(*points, strict=True)
    low, high = min(heights), max(heights)
    frame = _Frame(min(times), max(times), _WIDTH - _NAMES)
    scaled = _Scale(frame, low, (high - low) or 1.0)
    names = [one for one in series if one.points]
    content = [_band(scaled.line(removable)), frame.axes()]
    content += [
        _text("tick end", _LEFT - 6, _TOP + 4, _day(high)),
        _text("tick end", _LEFT - 6, _HEIGHT - 30, _day(low)),
    ]
    content.append(_text("tick", _LEFT, _HEIGHT - 10, clock(int(frame.first))))
    content.append(_text("tick end", _WIDTH - _NAMES, _HEIGHT - 10, clock(int(frame.last))))
    content.append(_text("tick bad", _LEFT + 6, _HEIGHT - 34, f"older than {duration(expires_after)}: may be removed"))
    content.append(_LINE.format(number="current", points=_points(scaled.line(current)), title="the newest snapshot"))
    for number, one in enumerate(names):
        title = clean(f"{one.name}: {clock(int(one.points[-1][1]))}")
        content.append(_LINE.format(number=number % _DASHES, points=_points(scaled.line(one.points)), title=title))
    content += _beside(frame.right + 6, [(scaled.line(one.points)[-1][1], one.name) for one in names])
    return _chart("How far consumers have come, and what expiry may remove", content)


def band_of(current: Iterable[Point], expires_after: float) -> list[Point]:
    """Return the end of the history that expiry may remove, at each sample; the newest snapshot is always kept."""
    return [(at, min(at - expires_after, newest)) for at, newest in current]


def _day(milliseconds: float) -> str:
    return clock(int(milliseconds))[5:10]


def _beside(x: float, names: Sequence[tuple[float, str]]) -> list[Markup]:
    """Return names beside the ends of their lines, moved apart where lines end close together."""
    bottom, placed = _HEIGHT - _BOTTOM, _TOP
    shown = sorted(names)[-int((bottom - _TOP) / _NAME_HEIGHT) :]  # if not all fit: the consumers furthest behind
    content = []
    for number, (y, name) in enumerate(shown):
        left = (len(shown) - 1 - number) * _NAME_HEIGHT
        placed = max(placed, min(y + 4, bottom - left))
        content.append(_text("name", x, placed, clipped(name, _NAMES - 8, _SMALL)))
        placed += _NAME_HEIGHT
    return content


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps values to heights in a chart whose y axis does not start at 0."""

    frame: "_Frame"
    low: float
    whole: float

    def line(self, points: Iterable[Point]) -> list[Point]:
        """Return the coordinates of points in the SVG."""
        return [self.frame.at((x, (y - self.low) / self.whole)) for x, y in points]


@dataclass(frozen=True, slots=True)
class _Frame:
    """The plot area of a chart: ``x`` from ``first`` to ``last``, ``y`` from 0 at the bottom to 1 at the top."""

    first: float
    last: float
    right: float

    def at(self, point: Point) -> Point:
        """Return the coordinates of a point in the SVG."""
        across = (point[0] - self.first) / ((self.last - self.first) or 1.0)
        height = _HEIGHT - _TOP - _BOTTOM
        return _LEFT + across * (self.right - _LEFT), _TOP + (1 - min(1.0, max(0.0, point[1]))) * height

    def axes(self) -> Markup:
        """Return the y axis and the x axis."""
        return _PATH.format(kind="axis", path=f"M{_LEFT:g} {_TOP:g}V{_HEIGHT - _BOTTOM:g}H{self.right:g}")

    def marker(self, x: float, text: str) -> Markup:
        """Return a vertical dashed line, with a text on the side that has room for it."""
        place = self.at((x, 0.0))[0]
        is_right = place > (_LEFT + self.right) / 2
        line = _PATH.format(kind="marker", path=f"M{place:g} {_TOP:g}V{_HEIGHT - _BOTTOM:g}")
        return line + _text("tick end" if is_right else "tick", place + (-6 if is_right else 6), _HEIGHT * 0.6, text)


def _band(edge: Sequence[Point]) -> Markup:
    """Return the area between a line and the x axis."""
    bottom = _HEIGHT - _BOTTOM
    ends = [(edge[-1][0], bottom), (edge[0][0], bottom)] if edge else []
    return _PATH.format(kind="band", path=f"M{_points([*edge, *ends])}z") if edge else Markup("")


def _area(points: Sequence[Point]) -> Markup:
    return _PATH.format(kind="between", path=f"M{_points(points)}z") if points else Markup("")


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    return _TEXT.format(kind=kind, x=x, y=y, text=clean(text))


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _chart(label: str, content: Iterable[Markup]) -> Markup:
    return _CHART.format(width=_WIDTH, height=_HEIGHT, label=clean(label), content=Markup("").join(content))
