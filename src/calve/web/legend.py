"""Tones, which define the colour and the shape of a status in all pictures; and the legends of letter grids. Pure.

Colour alone never carries the meaning: a tone also has a shape, and pictures name the status in words, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from json import dumps

from markupsafe import Markup

from calve.engine import RunStatus, StepStatus
from calve.web.formats import words


class Tone(StrEnum):
    """A class of the style sheet for a kind of status, such as ``class="tone-ok"``; ``done`` is processed data."""

    OK = "ok"
    BAD = "bad"
    RUN = "run"
    WAIT = "wait"
    LATE = "late"
    OFF = "off"
    DONE = "done"


SHAPES: dict[Tone, str] = {
    Tone.OK: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    Tone.BAD: "M0-6l6 11h-12z",
    Tone.RUN: "M-5-3a2 2 0 0 1 2-2h6a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2h-6a2 2 0 0 1-2-2z",
    Tone.WAIT: "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    Tone.LATE: "M0-6l6 6-6 6-6-6z",
    Tone.OFF: "M-5-1.5h10v3h-10z",
    Tone.DONE: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
}
"""The outline of each tone's mark: an SVG path around (0, 0), at most 12 wide; that of ``wait`` is not filled."""

_SQUARE = SHAPES[Tone.RUN]
_CELLS = {
    Tone.BAD: SHAPES[Tone.BAD],
    Tone.LATE: SHAPES[Tone.OK],
    Tone.OFF: SHAPES[Tone.OFF],
    Tone.WAIT: "M-4.5-4.5h9v9h-9z",
}
"""The shapes of grid cells that differ from the usual square; ``static/elements/grid.js`` draws the same shapes."""

_OK = {StepStatus.SUCCEEDED, RunStatus.SUCCEEDED}
_OFF = {StepStatus.SKIPPED, StepStatus.DISABLED, StepStatus.UNSATISFIED, StepStatus.STOPPED, RunStatus.STOPPED}
_RUN = {StepStatus.EVALUATING_PARAMS, StepStatus.STARTING, StepStatus.RUNNING, StepStatus.FINISHING}
_LATE = {StepStatus.COMPLETED_WITH_ERROR, StepStatus.PAUSED, RunStatus.PAUSED}
_TONES: dict[str, Tone] = {
    **dict.fromkeys((*StepStatus, *RunStatus), Tone.WAIT),
    **{status: Tone.BAD for status in StepStatus if status.endswith("_FAILED")},
    **dict.fromkeys((RunStatus.FAILED, RunStatus.TIMED_OUT, StepStatus.TIMED_OUT), Tone.BAD),
    **dict.fromkeys(_OK, Tone.OK),
    **dict.fromkeys(_OFF, Tone.OFF),
    **dict.fromkeys((*_RUN, RunStatus.IN_PROGRESS), Tone.RUN),
    **dict.fromkeys(_LATE, Tone.LATE),
}


def tone_of(status: object) -> Tone:
    """Return the tone of the status of a step or a run; ``wait`` for anything else."""
    return _TONES.get(str(status).upper(), Tone.WAIT)


_MARK = Markup('<path class="mark tone-%s" transform="translate(%g %g)" d="%s"/>')


def mark(tone: Tone, x: float, y: float) -> Markup:
    """Return the mark of a tone as an SVG path."""
    return _MARK % (tone, x, y, SHAPES[tone])


@dataclass(frozen=True, slots=True)
class Letter:
    """The meaning of a letter in a grid; ``is_faint`` makes it less prominent than others of its tone."""

    tone: Tone
    text: str
    is_faint: bool = False


NOTHING = "."
"""The letter of an empty cell, which is not drawn."""

Legend = Mapping[str, Letter]
"""The meanings of a grid's letters."""

_CHANGES = {
    "?": (Tone.OFF, False),
    "c": (Tone.DONE, False),
    "L": (Tone.LATE, True),
    "o": (Tone.RUN, True),
    "p": (Tone.RUN, False),
    "l": (Tone.LATE, False),
    "r": (Tone.WAIT, True),
    "x": (Tone.BAD, False),
}


def change_legend(meanings: Mapping[str, str]) -> Legend:
    """Return the legend of the map of a table's changes, from the ``legend`` of the API's document."""
    tones = {letter: _CHANGES.get(letter, (Tone.OFF, True)) for letter in meanings}
    return {letter: Letter(tone, meanings[letter], is_faint) for letter, (tone, is_faint) in tones.items()}


def status_legend(letters: Mapping[str, str]) -> Legend:
    """Return the legend of a grid of statuses, from the ``legend`` of the API's document."""
    return {letter: Letter(tone_of(status), words(status)) for letter, status in letters.items()}


def legend_json(legend: Legend) -> str:
    """Return a legend as JSON, for ``<grid-map data-legend="…">``."""
    return dumps(
        {
            letter: {"tone": one.tone, "text": one.text, **({"faint": True} if one.is_faint else {})}
            for letter, one in legend.items()
        }
    )


def legend_list(legend: Legend, shown: str | None = None) -> Markup:
    """Return a legend as an HTML list: of all letters, or only of those in ``shown``."""
    letters = [letter for letter in legend if letter != NOTHING and (shown is None or letter in shown)]
    items = (_item(legend[letter]) for letter in letters)
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(items))


def _item(letter: Letter) -> Markup:
    path = _CELLS.get(letter.tone, _SQUARE)
    faint = " faint" if letter.is_faint else ""
    picture = Markup('<svg viewBox="-6 -6 12 12" aria-hidden="true"><path class="mark tone-{}{}" d="{}"/></svg>')
    return Markup("<li>{}{}</li>").format(picture.format(letter.tone, faint, path), letter.text)
