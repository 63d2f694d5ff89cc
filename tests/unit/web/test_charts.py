"""Charts: what they show is right, nothing is drawn outside of them, and no text becomes markup."""

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, strategies as st
from markupsafe import Markup

from calve.web.charts import Series, Span, band_of, lag_against_expiry, lateness, run_spans, sparkline

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{0}{x}%s", "\x00\x1b", "&lt;"]


def _parsed(picture: Markup) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 - what we have just written


def _points(element: ET.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in element.attrib["points"].split())]


@given(st.lists(st.floats(-1e9, 1e12, allow_nan=False), min_size=2, max_size=60))
def test_a_sparkline_stays_within_its_size(values: list[float]) -> None:
    """Whatever the values, the line is inside of the picture, and has a point for each."""
    line = _parsed(sparkline(values, label="saved")).find("polyline")
    assert line is not None
    points = _points(line)
    assert len(points) == len(values)
    assert all(0 <= x <= 220.1 and 0 <= y <= 40 for x, y in points)


def test_a_single_value_is_no_line() -> None:
    """A sparkline needs two values."""
    assert sparkline([1.0], label="saved") == ""


def test_the_steps_of_a_run_are_bars_in_per_cent_of_it() -> None:
    """A bar begins and ends where its step did; one that still runs reaches to now, and says so."""
    table = _parsed(run_spans([Span("clean", "SUCCEEDED", 1_000, 3_000), Span("merge", "RUNNING", 3_000)], now=5_000))
    first, second = (row.find("td/svg") for row in table.iter("tr"))
    assert first is not None
    assert second is not None
    bars = [(bar.attrib["x"], bar.attrib["width"]) for bar in table.iter("rect")]
    assert bars == [("0.00%", "50.00%"), ("50.00%", "50.00%")]
    assert first.attrib["class"] == "span tone-ok"
    assert second.attrib["class"] == "span tone-run running"
    assert [text.text for text in table.iter("text")] == ["2.0 s", "2.0 s so far"]
    assert [text.attrib["class"] for text in table.iter("text")] == ["after", "before"]


def test_the_text_of_a_bar_over_the_whole_time_is_inside_of_it() -> None:
    """There is no room for it on either side."""
    table = _parsed(run_spans([Span("a", "SUCCEEDED", 0, 4_000)], now=9_000))[0]
    (text,) = table.iter("text")
    assert (text.attrib["class"], text.attrib["x"], text.attrib["dx"]) == ("inside", "100.00%", "-6")


def test_a_run_without_steps_has_an_empty_table() -> None:
    """Nothing is drawn before the first step has begun."""
    assert len(_parsed(run_spans([], now=0))[0]) == 0


def test_the_curve_has_a_band_and_a_marker() -> None:
    """What had come by a time, at least and at most; the marker says what it is told, and stays in the picture."""
    curve = [(0.0, 0.0, 0.7), (1.0, 0.7, 0.93), (14.0, 1.0, 1.0)]
    chart = _parsed(lateness(curve, lookback=20, missed="2 % to 7 %"))
    assert "20 days: 2 % to 7 % missed" in [text.text for text in chart.iter("text")]
    least, most = (_points(line) for line in chart.iter("polyline"))
    assert len(least) == len(most) == 5
    assert all(low[1] >= high[1] for low, high in zip(least, most, strict=True))
    kinds = [path.attrib["class"] for path in chart.iter("path")]
    assert kinds == ["between", "axis", "marker"]
    assert not any(path.attrib["class"] == "marker" for path in _parsed(lateness(curve)).iter("path"))
    assert list(_parsed(lateness([])).iter("polyline")) != []


DAY = 86_400_000.0


def test_a_consumer_that_falls_behind_comes_to_the_band() -> None:
    """The line of a consumer goes down as it falls behind, and is in the band when its history may be removed."""
    current = [(n * DAY, n * DAY) for n in range(10, 12)]
    well = Series("playback.daily", tuple((at, at - 0.1 * DAY) for at, _ in current))
    bad = Series("ads.audience", ((10 * DAY, 8 * DAY), (11 * DAY, 5 * DAY)))
    chart = _parsed(lag_against_expiry([well, bad], current, expires_after=5 * DAY))
    newest, first, second = (_points(line) for line in chart.iter("polyline"))
    edge = _band_of(chart)
    assert newest[-1][1] < first[-1][1] < edge[1][1] < second[-1][1]
    assert second[0][1] < edge[0][1]
    texts = {text.text for text in chart.iter("text")}
    assert {"playback.daily", "ads.audience", "1970-01-11 00:00", "older than 5 d: may be removed"} <= texts


def _band_of(chart: ET.Element) -> list[tuple[float, float]]:
    """Return the upper edge of the band."""
    (band,) = (path for path in chart.iter("path") if path.attrib["class"] == "band")
    pairs = (pair.split(",") for pair in band.attrib["d"].strip("Mz").split())
    return [(float(x), float(y)) for x, y in pairs][:-2]


def test_expiry_never_removes_the_newest_snapshot() -> None:
    """A consumer that is up to date is above the band, however long nobody has written."""
    current = [(at * DAY, 1 * DAY) for at in range(1, 30)]
    assert max(edge for _, edge in band_of(current, 5 * DAY)) == 1 * DAY
    chart = _parsed(lag_against_expiry([Series("a", tuple(current))], current, expires_after=5 * DAY))
    line = _points(list(chart.iter("polyline"))[1])
    assert all(y <= edge for (_, y), (_, edge) in zip(line, _band_of(chart), strict=True))


def test_names_do_not_overlap() -> None:
    """Also of consumers that are equally far behind, wherever that is; of too many, those in most need have names."""
    current = [(0.0, 0.0), (DAY, DAY)]
    for height in (0.0, 0.5 * DAY, DAY):
        same = [Series(f"team.job{n}", ((0.0, 0.0), (DAY, height))) for n in range(8)]
        chart = _parsed(lag_against_expiry(same, current, expires_after=2 * DAY))
        places = [float(text.attrib["y"]) for text in chart.iter("text") if text.attrib["class"] == "name"]
        assert len(places) == 8
        assert all(then - before >= 12 for before, then in pairwise(places))
        assert 0 < places[0] < places[-1] < 175
    many = [Series(f"team.job{n}", ((DAY, n * DAY / 40),)) for n in range(40)]
    chart = _parsed(lag_against_expiry(many, current, expires_after=2 * DAY))
    names = [text.text for text in chart.iter("text") if text.attrib["class"] == "name"]
    assert len(names) == 11
    assert "team.job0" in names


def test_a_table_without_consumers_has_only_its_band() -> None:
    """The chart is drawn before anybody has read the table, and for a consumer without samples."""
    assert len(list(_parsed(lag_against_expiry([], [], expires_after=1.0)).iter("polyline"))) == 1
    assert len(list(_parsed(lag_against_expiry([Series("new", ())], [], expires_after=1.0)).iter("polyline"))) == 1


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_text(text: str) -> None:
    """Names of steps and consumers are written, never interpreted; there is no style and no handler."""
    pictures = [
        sparkline([1, 2], label=text),
        run_spans([Span(text, text, 0, 5, text)], now=9),
        lag_against_expiry([Series(text, ((0.0, 1.0),))], [(0.0, 1.0)], expires_after=3),
        lateness([(1.0, 1.0, 1.0)], unit=text, missed=text),
    ]
    for root in map(_parsed, pictures):
        tags = {"svg", "title", "polyline", "path", "text", "rect", "table", "tbody", "tr", "th", "td", "a"}
        assert {element.tag for element in root.iter()} <= tags
        names = {name for element in root.iter() for name in element.attrib}
        assert not any(name.startswith("on") or name == "style" for name in names)
