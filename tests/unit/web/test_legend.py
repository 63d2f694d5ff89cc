"""Tones and legends: every status has a colour and a shape, and every letter is explained."""

from json import loads

import pytest
from markupsafe import Markup

from calve.capture.inspection import LEGEND
from calve.engine import RunStatus, StepStatus
from calve.web.legend import SHAPES, Letter, Tone, change_legend, legend_json, legend_list, mark, status_legend, tone_of


@pytest.mark.parametrize(
    ("status", "tone"),
    [
        (StepStatus.SUCCEEDED, Tone.OK),
        (StepStatus.FATALLY_FAILED, Tone.BAD),
        (StepStatus.TIMED_OUT, Tone.BAD),
        (StepStatus.RUNNING, Tone.RUN),
        (StepStatus.WAITING_FOR_PERMITS, Tone.WAIT),
        (StepStatus.COMPLETED_WITH_ERROR, Tone.LATE),
        (StepStatus.SKIPPED, Tone.OFF),
        (RunStatus.IN_PROGRESS, Tone.RUN),
        ("succeeded", Tone.OK),
        ("something else", Tone.WAIT),
    ],
)
def test_a_status_has_a_tone(status: str, tone: Tone) -> None:
    """Statuses of steps and runs have the tone that people expect, in either case; unknown ones wait."""
    assert tone_of(status) is tone


def test_tones_of_statuses_differ_in_shape() -> None:
    """Nobody needs to see colours to tell the tones of statuses apart."""
    tones = {tone_of(status) for status in (*StepStatus, *RunStatus)}
    assert {SHAPES[tone] for tone in tones if tone is not Tone.WAIT} == set(SHAPES.values()) - {SHAPES[Tone.WAIT]}
    assert 'class="mark tone-bad"' in mark(Tone.BAD, 1, 2)


def test_a_legend_reaches_the_browser_as_data() -> None:
    """The element reads letters, tones and texts from one attribute, so that they are written once."""
    legend = status_legend({"D": "SUCCEEDED", "W": "FATALLY_FAILED"})
    assert loads(legend_json(legend)) == {
        "D": {"tone": "ok", "text": "succeeded"},
        "W": {"tone": "bad", "text": "fatally failed"},
    }
    changes = loads(legend_json(change_legend(LEGEND)))
    assert changes["r"] == {"tone": "wait", "text": LEGEND["r"], "faint": True}
    assert len({(one["tone"], one.get("faint")) for one in changes.values()}) == len(LEGEND)


def test_a_legend_lists_the_letters_that_occur() -> None:
    """People see a shape and a word for each letter of the grid, escaped."""
    changes = change_legend(LEGEND)
    assert legend_list(changes).count("<li>") == len(LEGEND) - 1
    assert legend_list(changes, shown="ccp..").count("<li>") == 2
    hostile = legend_list({"a": Letter(Tone.OK, "<script>")})
    assert isinstance(hostile, Markup)
    assert "<script>" not in hostile
