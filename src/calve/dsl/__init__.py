"""Workflows described in Python: nothing here runs anything."""

from calve.dsl.captures import icdc, ip_capture, ip_commit
from calve.dsl.composites import Loop, foreach, subworkflow, template, while_
from calve.dsl.graphs import Ends, Step
from calve.dsl.loading import workflows_in
from calve.dsl.programs import docker, java, kubernetes, notebook, python, shell
from calve.dsl.queries import spark, sql
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
from calve.dsl.simple import approval, http, noop, sleep, step
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
    "approval",
    "cron",
    "docker",
    "exponential",
    "expr",
    "fixed",
    "foreach",
    "http",
    "icdc",
    "incremental",
    "interval",
    "ip_capture",
    "ip_commit",
    "java",
    "kubernetes",
    "noop",
    "notebook",
    "on",
    "on_valid_through",
    "param",
    "python",
    "retry",
    "secret",
    "shell",
    "signal",
    "signal_dependency",
    "signal_output",
    "sleep",
    "spark",
    "sql",
    "step",
    "subworkflow",
    "template",
    "valid_through",
    "while_",
    "workflows_in",
]
