"""Charts as SVG text: bars, coloured by classes of the page that holds them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 720
_LEFT = 120
_ROW = 34
_BAR = 22


@dataclass(frozen=True, slots=True)
class Piece:
    """A coloured piece of a bar."""

    colour: str
    """A class of the page's style."""
    value: float
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of pieces, with a word before and one after it."""

    label: str
    pieces: tuple[Piece, ...]
    after: str = ""

    @property
    def value(self) -> float:
        """Its length."""
        return sum(piece.value for piece in self.pieces)


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return a chart of horizontal bars, all to one scale."""
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
