"""The runtimes of the step types: what carries out a step."""

from calve.steps.registry import BUILT_IN, ENTRY_POINTS, load_runtimes
from calve.steps.services import Cluster, Services
from calve.steps.surroundings import Surroundings

__all__ = ["BUILT_IN", "ENTRY_POINTS", "Cluster", "Services", "Surroundings", "load_runtimes"]
