"""Draw the pictures of docs/explain/architecture.md from its blocks: a column for each kind of step.

From the root of the repository: python scripts/ways.py [--check]
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from generated import ROOT, write

PAGE = ROOT / "docs" / "explain" / "architecture.md"
ASSETS = ROOT / "docs" / "assets"
NAMES = {
    "A capture": "way-of-a-capture.svg",
    "A run": "way-of-a-run.svg",
    "A Spark step with targets, started over REST": "way-of-a-spark-step.svg",
}
"""The drawing of each section."""
_HOP = re.compile(r"(?P<lane>[a-z ]*?) +(?P<name>calve\.[\w.]+)")
_WIDTH, _BOX, _HEIGHT, _STEP, _HEAD = 216, 204, 24, 40, 34
_STYLE = (
    ".box{fill:#f4f7fa;stroke:#8b98a5}.line{stroke:#5b6875;fill:none}.tip{fill:#5b6875}.ink{fill:#1f2933}"
    ".dim{fill:#5b6875}.lane{stroke:#dfe5ea}text{font-size:12px;text-anchor:middle}.dim{font-size:13px}"
    "@media (prefers-color-scheme:dark){.box{fill:#1c242c;stroke:#62707d}.line{stroke:#9aa7b4}.tip{fill:#9aa7b4}"
    ".ink{fill:#e6edf3}.dim{fill:#9aa7b4}.lane{stroke:#323d47}}"
)
_TIP = (
    '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 1 L9 5 L0 9 z"/></marker>'
)


@dataclass(frozen=True, slots=True)
class Hop:
    """A function of a way, in the lane of the kind that the block names, or that of the function before."""

    lane: str
    function: str


def hops(section: str) -> Iterator[Hop]:
    """Yield the functions of the block of a section, in order."""
    lane = ""
    for line in section.partition("```text\n")[2].partition("```")[0].splitlines():
        if found := _HOP.fullmatch(line):
            lane = found["lane"].strip() or lane
            yield Hop(lane, found["name"])


def drawing(title: str, way: list[Hop]) -> str:
    """Return the drawing of a way."""
    lanes = list(dict.fromkeys(hop.lane for hop in way))
    width, height = len(lanes) * _WIDTH, _HEAD + len(way) * _STEP + 6
    centres = {lane: number * _WIDTH + _WIDTH // 2 for number, lane in enumerate(lanes)}
    places = [(centres[hop.lane], _HEAD + number * _STEP + _STEP // 2) for number, hop in enumerate(way)]
    font = 'font-family="system-ui, sans-serif"'
    size = f'viewBox="0 0 {width} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title" {font}>',
            f'<title id="title">The way of {escape(title[0].lower() + title[1:])}</title>',
            f"<style>{_STYLE}</style>",
            f"<defs>{_TIP}</defs>",
            *(_lane(lane, at, height) for lane, at in centres.items()),
            *(_arrow(*pair) for pair in pairwise(places)),
            *(_box(hop.function, *place) for hop, place in zip(way, places, strict=True)),
            "</svg>\n",
        ]
    )


def _lane(name: str, at: int, height: int) -> str:
    line = f'<path class="lane" d="M{at} {_HEAD} V{height}" stroke-dasharray="2 4"/>'
    return f'<text class="dim" x="{at}" y="20">{escape(name)}</text>{line}'


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return an arrow down to the next function: along its lane, or halfway between the two to another one."""
    (x, y), (to_x, to_y) = start, end
    top, middle, bottom = y + _HEIGHT // 2, y + _STEP // 2, to_y - _HEIGHT // 2
    return f'<path class="line" marker-end="url(#tip)" d="M{x} {top} V{middle} H{to_x} V{bottom}"/>'


def _box(function: str, x: int, y: int) -> str:
    """Return a function as its class or module and its name; the whole name is its tooltip."""
    shown = ".".join(function.split(".")[-2:])
    box = f'<rect class="box" x="{x - _BOX // 2}" y="{y - _HEIGHT // 2}" width="{_BOX}" height="{_HEIGHT}" rx="4"/>'
    return f'<g><title>{function}</title>{box}<text class="ink" x="{x}" y="{y + 4}">{shown}</text></g>'


def main() -> int:
    """Write the drawings, or tell which are out of date."""
    text = PAGE.read_text(encoding="utf-8")
    sections = {title: text.partition(f"## {title}\n")[2].partition("\n## ")[0] for title in NAMES}
    made = {ASSETS / NAMES[title]: drawing(title, list(hops(section))) for title, section in sections.items()}
    return write(made, "ways")


if __name__ == "__main__":
    sys.exit(main())
