"""Steps of incremental processing: IpCapture, IpCommit, ICDC."""

from collections.abc import Iterable
from typing import Any

from calve.definition.document import Node, entry, text
from calve.definition.model import DATA_OPERATIONS, ParamType
from calve.definition.problems import Problems, did_you_mean
from calve.definition.step_types.step_params import fields
from calve.definition.step_types.step_type import (
    MAPS,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    Config,
    Field,
    Output,
    Outputs,
    StepType,
)

_OF_CAPTURE = (
    Output("capture_id", ParamType.STRING, "The id of the capture; `calve show ID` shows it in full."),
    Output("changed", ParamType.BOOLEAN, "Whether anything changed; test it in an edge to skip the rest."),
    Output("pending", ParamType.BOOLEAN, "Whether a limit left changes for the next capture."),
    Output("files", ParamType.LONG, "The number of data files in the change."),
    Output("records", ParamType.LONG, "The number of rows in the change."),
    Output("rows", ParamType.LONG, "The same as records."),
    Output("bytes", ParamType.LONG, "The size of its files in bytes."),
    Output("deleted_records", ParamType.LONG, "The number of rows that were removed."),
    Output(
        "range_predicate", ParamType.STRING, "An SQL condition that is true for every changed value.", gives_rows=True
    ),
)
"""Outputs of a capture, and of each of its tables."""
_OF_TABLE = (
    Output("source_table", ParamType.STRING, "The table that changed."),
    Output("icdc_table", ParamType.STRING, "The table that references the new and changed rows.", gives_rows=True),
    Output(
        "relation", ParamType.STRING, "What to write after FROM or USING to read exactly those rows.", gives_rows=True
    ),
    Output("filter", ParamType.STRING, "The condition that makes icdc_table exact, if it needs one.", gives_rows=True),
    Output(
        "deletes_table",
        ParamType.STRING,
        "The table that references the removed rows; empty if there is none.",
        gives_rows=True,
    ),
    Output(
        "deletes_relation", ParamType.STRING, "What to write after FROM to read exactly those rows.", gives_rows=True
    ),
    Output("exactness", ParamType.STRING, "How relation yields exactly the change."),
    Output("from_snapshot_id", ParamType.LONG, "The snapshot after which the change starts.", gives_rows=True),
    Output("to_snapshot_id", ParamType.LONG, "The snapshot with which the change ends.", gives_rows=True),
)
"""Outputs of a single table."""

_DATA_OPERATIONS = Field(
    "data_operations",
    TEXTS,
    "The kinds of snapshots to capture; other kinds in the range are an error, except compaction.",
    default=["append"],
    choices=DATA_OPERATIONS,
)
_RANGE_COLUMNS = Field("range_columns", TEXTS, "The columns to report the changed range of.")
_SHARED = (
    Field(
        "initial",
        (*TEXT, *WHOLE),
        "Where to start without a checkpoint: latest, a snapshot, a tag or a time. By default, capture everything.",
    ),
    Field(
        "until",
        (*TEXT, *WHOLE),
        "Where to stop: a snapshot, a tag, a branch or a time. By default, now.",
    ),
    Field(
        "on_gap",
        TEXT,
        "What to do if needed snapshots have expired: fail, continue by row lineage, or take the whole table.",
        default="fail",
        choices=("fail", "upserts", "full"),
    ),
    Field(
        "on_schema_change",
        TEXT,
        "What to do if the schema changed: read with the new one, or fail.",
        default="evolve",
        choices=("evolve", "fail"),
    ),
    Field("max_files", WHOLE, "The maximum number of files to take from each table.", minimum=1),
    Field("max_bytes", WHOLE, "The maximum number of bytes to take from each table.", minimum=1),
    Field("lease", TRUTH, "Protect the captured files from expiry until the commit, with a tag.", default=False),
    Field("consumer", TEXT, "The consumer that owns the checkpoint. By default, the workflow and the step."),
)


def alias_of(table: str) -> str:
    """Return the last part of a table's name."""
    return table.rsplit(".", 1)[-1].strip('`"')


def tables_of(config: Config) -> dict[str, str] | None:
    """Return the source tables by alias; None if they are not known before the run.

    Of several tables with the same alias only the last is there; see ``_check_aliases``.
    """
    match config.get("source_tables"):
        case list() as tables if not _has_dynamic(tables):
            return {alias_of(table): table for table in tables}
        case dict() as tables:
            return {alias: str(table) for alias, table in tables.items()}
        case str() as table:
            return {alias_of(table): table}
        case _:
            return None


def _has_dynamic(values: Iterable[Any]) -> bool:
    return any(not isinstance(value, str) for value in values)


def _capture_outputs(config: Config) -> Outputs:
    """Return the outputs of an IpCapture step: those of the whole capture, and of each table by its alias."""
    tables = tables_of(config)
    columns = config.get("range_columns", [])
    is_known = isinstance(columns, list) and not _has_dynamic(columns)
    of_ranges = _range_outputs(columns if is_known else [])
    of_table = (*_OF_CAPTURE[1:], *_OF_TABLE, *of_ranges)
    is_one = tables is None or len(tables) == 1
    outputs = {output.name: output for output in (*_OF_CAPTURE, *of_ranges, *(_OF_TABLE if is_one else ()))}
    if tables and (not is_one or isinstance(config["source_tables"], dict)):
        for alias, table in tables.items():
            outputs[alias] = Output(alias, ParamType.MAP, f"The change of {table}.", of_table)
    return Outputs(outputs, is_open=tables is None or not is_known)


def _range_outputs(columns: Iterable[str]) -> tuple[Output, ...]:
    """Return the two ends of each column's range; a dot of a nested column becomes an underscore."""
    return tuple(
        Output(
            f"{column.replace('.', '_')}_{side}",
            ParamType.STRING,
            f"The {side} end of the range of {column}.",
            gives_rows=True,
        )
        for column in columns
        for side in ("lower", "upper")
    )


def _check_aliases(node: Node, config: Config, problems: Problems) -> None:
    """Report tables that the last part of their names does not distinguish."""
    tables = config.get("source_tables")
    aliases = tables_of(config)
    if aliases is None:
        return
    place = node.at(("value", "source_tables"))
    hint = "write source_tables as a map: {some_name: db.table, other_name: db.table}"
    if not aliases:
        problems.add(place, "missing_field", "ip_capture.source_tables names no table")
    if isinstance(tables, list) and len(aliases) < len(tables):
        seen = [alias_of(table) for table in tables]
        twice = next(alias for alias in seen if seen.count(alias) > 1)
        message = f"two tables of ip_capture.source_tables are called {twice}"
        problems.add(place, "duplicate_alias", message, hint=hint)
    reserved = {output.name for output in (*_OF_CAPTURE, *_OF_TABLE)}
    is_mapped = isinstance(tables, dict) or len(aliases) > 1
    for alias in aliases if is_mapped else ():
        if alias in reserved:
            message = f"{alias} cannot name a source table: it is an output of every capture"
            problems.add(place, "duplicate_alias", message, hint=hint)


IP_CAPTURE = StepType(
    "IpCapture",
    "Captures what changed in source tables since the last commit, from metadata only.",
    config="ip_capture",
    fields=(
        Field(
            "source_tables",
            (*TEXTS, *TEXT, *MAPS),
            "The tables: a list of names, or a map from names of your own to tables.",
            required=True,
            values=TEXT,
        ),
        Field(
            "capture_mode",
            TEXT,
            "What to create: an ICDC table, only the ranges, a Spark view, or a table read by its path.",
            default="ICDC",
            choices=("ICDC", "RANGE", "VIEW", "PATH"),
        ),
        _DATA_OPERATIONS,
        _RANGE_COLUMNS,
        *_SHARED,
        Field(
            "when_unchanged",
            TEXT,
            "What to do if nothing changed: skip everything after the step, or run it.",
            default="skip",
            choices=("skip", "run"),
        ),
    ),
    outputs_of=_capture_outputs,
    check=_check_aliases,
)

IP_COMMIT = StepType(
    "IpCommit",
    "Moves the checkpoint past the change that a step of this workflow captured.",
    config="ip_commit",
    fields=(
        Field("capture_step", TEXT, "The id of the IpCapture step.", required=True, is_step=True),
        Field("capture", TEXT, "The id of the capture. By default, the one that the step took."),
    ),
    outputs=(
        Output("capture_id", ParamType.STRING, "The capture that was committed."),
        Output("committed", ParamType.BOOLEAN, "Whether the checkpoint moved; false if nothing had changed."),
    ),
)

ICDC = StepType(
    "ICDC",
    "Captures one table into a named table, and commits when the workflow has succeeded.",
    config="icdc",
    fields=(
        Field("source_table", TEXT, "The table to capture.", required=True),
        Field(
            "target_table",
            TEXT,
            "The table to hold the change; replaced on every run.",
            required=True,
        ),
        _DATA_OPERATIONS,
        _RANGE_COLUMNS,
        *_SHARED,
    ),
    outputs_of=lambda config: _capture_outputs({**config, "source_tables": config.get("source_table")}),
)


def check_references(steps: Iterable[Node], problems: Problems) -> None:
    """Report commits that do not name a capture step of the workflow, and captures that nothing commits.

    Args:
        steps: every step of a workflow in canonical form, without wrappers, those inside loops too (``all_steps``).
        problems: where to report them.
    """
    typed: dict[str, dict[str, Node]] = {IP_CAPTURE.name: {}, ICDC.name: {}, IP_COMMIT.name: {}}
    others = set()
    for step in steps:
        step_id, name = text(entry(step, "id")) or "", text(entry(step, "type"))
        if name in typed:
            typed[name][step_id] = step
        else:
            others.add(step_id)
    captures = typed[IP_CAPTURE.name] | typed[ICDC.name]
    committed = set()
    for step in typed[IP_COMMIT.name].values():
        given = fields(step, IP_COMMIT).get("capture_step")
        if given is None:
            continue
        named = given.plain()
        committed.add(named)
        if isinstance(named, str) and named not in captures:
            what = f"{named} is not an IpCapture step" if named in others else f"there is no step {named}"
            hint = did_you_mean(named, captures) or "add an IpCapture step"
            problems.add(given.node, "unknown_capture_step", f"ip_commit.capture_step: {what}", hint=hint)
    if not all(isinstance(name, str) for name in committed):
        return  # a reference: known when the step runs
    for step_id, step in typed[IP_CAPTURE.name].items():
        if step_id not in committed:
            message = f"no step commits what {step_id} captures, so every run captures it again"
            hint = f"add a step of type IpCommit with ip_commit: {{capture_step: {step_id}}}"
            problems.warn(step, "capture_uncommitted", message, hint=hint)
