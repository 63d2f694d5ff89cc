"""The playback pipeline of the examples, run both ways on made-up events: with a lookback window, and incrementally."""

from calve.demo.events import WINDOW, Shape
from calve.demo.figures import STAGES, Day, Lane, Part, Result, Stage
from calve.demo.playing import LANES, Playback, settings_in
from calve.demo.running import Runs

__all__ = [
    "LANES",
    "STAGES",
    "WINDOW",
    "Day",
    "Lane",
    "Part",
    "Playback",
    "Result",
    "Runs",
    "Shape",
    "Stage",
    "settings_in",
]
