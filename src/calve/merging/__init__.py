"""Merge a change into a table by the cheapest plan that gives what ``MERGE`` would give."""

from calve.merging.merging import merge
from calve.merging.running import Merged, Part

__all__ = ["Merged", "Part", "merge"]
