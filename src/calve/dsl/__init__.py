"""Workflows described in Python; this package only builds definitions and runs nothing.

Others may import what ``__all__`` lists, and ``types``, which has a function for each step type of installed packages.
"""

from calve.dsl import steps, types as types
from calve.dsl.any_step import step
from calve.dsl.files import workflows_in
from calve.dsl.graph import Ends, Loop, Step
from calve.dsl.retries import Backoff, Retry, exponential, fixed, retry
from calve.dsl.signals import (
    Signal,
    SignalDependency,
    SignalOutput,
    on,
    signal_dependency,
    signal_output,
    valid_through,
)
from calve.dsl.steps import *  # noqa: F403 - a function for each built-in step type
from calve.dsl.triggers import Trigger, cron, incremental, interval, on_valid_through, signal
from calve.dsl.values import Param, Reference, Value, expr, param, secret
from calve.dsl.workflow import Workflow

__all__ = [
    "Backoff",
    "Ends",
    "Loop",
    "Param",
    "Reference",
    "Retry",
    "Signal",
    "SignalDependency",
    "SignalOutput",
    "Step",
    "Trigger",
    "Value",
    "Workflow",
    "cron",
    "exponential",
    "expr",
    "fixed",
    "incremental",
    "interval",
    "on",
    "on_valid_through",
    "param",
    "retry",
    "secret",
    "signal",
    "signal_dependency",
    "signal_output",
    "step",
    "valid_through",
    "workflows_in",
]
__all__ += steps.__all__
