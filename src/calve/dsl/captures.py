"""Steps of incremental processing: ip_capture, ip_commit, icdc."""

# The keywords that all steps share are described once, at ``step``.
# ruff: noqa: D417

from collections.abc import Mapping, Sequence
from typing import Literal

from calve.dsl.fields import FailureMode, Tags, typed
from calve.dsl.graphs import Step
from calve.dsl.retries import Retry
from calve.dsl.signals import SignalDependency, SignalOutput
from calve.dsl.triggers import Duration, Operation
from calve.dsl.values import Flag, Param, Reference, Text, TextMap, Texts, Value, Whole


def ip_capture(
    step_id: str,
    /,
    *,
    source_tables: Text | Texts | TextMap,
    capture_mode: Literal["ICDC", "RANGE", "VIEW", "PATH"] | Reference | Param | None = None,
    data_operations: Sequence[Operation] | Param | None = None,
    range_columns: Texts | None = None,
    initial: Text | int | None = None,
    until: Text | int | None = None,
    on_gap: Literal["fail", "upserts", "full"] | Reference | Param | None = None,
    on_schema_change: Literal["evolve", "fail"] | Reference | Param | None = None,
    max_files: Whole | None = None,
    max_bytes: Whole | None = None,
    lease: Flag | None = None,
    consumer: Text | None = None,
    when_unchanged: Literal["skip", "run"] | Reference | Param | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that captures what changed in source tables since the last commit, from metadata only.

    Args:
        step_id: The id of the step.
        source_tables: The tables: a list of names, or a map from a name of your own to each.
        capture_mode: What to leave behind: an ICDC table, the ranges only, a Spark view, or a table read by its
            path; ``"ICDC"`` unless told.
        data_operations: Which kinds of snapshots to capture; others in the range are an error, but for compaction;
            ``["append"]`` unless told.
        range_columns: Columns to tell the changed range of.
        initial: Where to begin without a checkpoint: latest, a snapshot, a tag or a time. With everything, if not
            given.
        until: Where to stop: a snapshot, a tag, a branch or a time. Now, if not given.
        on_gap: What to do where history was expired: fail, go on by row lineage, or take the whole table; ``"fail"``
            unless told.
        on_schema_change: What to do where the schema changed: read with the new one, or fail; ``"evolve"`` unless told.
        max_files: Take at most so many files of each table.
        max_bytes: Take at most so many bytes of each table.
        lease: Keep the captured files from expiry until the commit, by a tag; False unless told.
        consumer: Who keeps the checkpoint; the workflow and the step, if not given.
        when_unchanged: What to do where nothing changed: skip all that comes after the step, or run it; ``"skip"``
            unless told.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("IpCapture", locals())


def ip_commit(
    step_id: str,
    /,
    *,
    capture_step: Step | Text,
    capture: Text | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that moves the checkpoint past what a capture step of this workflow captured.

    Args:
        step_id: The id of the step.
        capture_step: The step that captured, or its id.
        capture: The id of the capture; that which the step took, if not given.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    capture_step = capture_step.id if isinstance(capture_step, Step) else capture_step
    return typed("IpCommit", locals())


def icdc(
    step_id: str,
    /,
    *,
    source_table: Text,
    target_table: Text,
    data_operations: Sequence[Operation] | Param | None = None,
    range_columns: Texts | None = None,
    initial: Text | int | None = None,
    until: Text | int | None = None,
    on_gap: Literal["fail", "upserts", "full"] | Reference | Param | None = None,
    on_schema_change: Literal["evolve", "fail"] | Reference | Param | None = None,
    max_files: Whole | None = None,
    max_bytes: Whole | None = None,
    lease: Flag | None = None,
    consumer: Text | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that captures one table into a table of a given name.

    The checkpoint moves when the workflow has succeeded.

    Args:
        step_id: The id of the step.
        source_table: The table that changes.
        target_table: The name of the table that is to hold the change; replaced in each run.
        data_operations: Which kinds of snapshots to capture; others in the range are an error, but for compaction;
            ``["append"]`` unless told.
        range_columns: Columns to tell the changed range of.
        initial: Where to begin without a checkpoint: latest, a snapshot, a tag or a time. With everything, if not
            given.
        until: Where to stop: a snapshot, a tag, a branch or a time. Now, if not given.
        on_gap: What to do where history was expired: fail, go on by row lineage, or take the whole table; ``"fail"``
            unless told.
        on_schema_change: What to do where the schema changed: read with the new one, or fail; ``"evolve"`` unless told.
        max_files: Take at most so many files of each table.
        max_bytes: Take at most so many bytes of each table.
        lease: Keep the captured files from expiry until the commit, by a tag; False unless told.
        consumer: Who keeps the checkpoint; the workflow and the step, if not given.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("ICDC", locals())
