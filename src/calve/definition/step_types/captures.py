"""Steps of incremental processing: IpCapture, IpCommit, ICDC."""

from collections.abc import Iterable
from typing import Any

from calve.definition.document import Node
from calve.definition.model.params import ParamType
from calve.definition.problems import Problems
from calve.definition.step_types.model import (
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

OPERATIONS = ("append", "overwrite", "delete")

_OF_CAPTURE = (
    Output("capture_id", ParamType.STRING, "Names the capture; `calve show ID` tells all about it."),
    Output("changed", ParamType.BOOLEAN, "Whether there is any change; look at it in an edge to skip the rest."),
    Output("pending", ParamType.BOOLEAN, "Whether more is left for the next capture, because of a limit."),
    Output("files", ParamType.LONG, "How many data files the change holds."),
    Output("records", ParamType.LONG, "How many rows the change holds."),
    Output("rows", ParamType.LONG, "The same as records."),
    Output("bytes", ParamType.LONG, "How large its files are."),
    Output("deleted_records", ParamType.LONG, "How many rows left."),
    Output(
        "range_predicate", ParamType.STRING, "An SQL condition that holds for every changed value.", gives_rows=True
    ),
)
"""What is said of a capture, and of each of its tables too."""
_OF_TABLE = (
    Output("source_table", ParamType.STRING, "The table that changed."),
    Output("icdc_table", ParamType.STRING, "The table that references the new and changed rows.", gives_rows=True),
    Output("relation", ParamType.STRING, "What goes after FROM or USING to get exactly those rows.", gives_rows=True),
    Output(
        "filter", ParamType.STRING, "The condition that makes icdc_table exact, where it needs one.", gives_rows=True
    ),
    Output(
        "deletes_table",
        ParamType.STRING,
        "The table that references the rows that left; empty if there is none.",
        gives_rows=True,
    ),
    Output("deletes_relation", ParamType.STRING, "What goes after FROM to get exactly those rows.", gives_rows=True),
    Output("exactness", ParamType.STRING, "How relation gives exactly the change."),
    Output("from_snapshot_id", ParamType.LONG, "The snapshot after which the change begins.", gives_rows=True),
    Output("to_snapshot_id", ParamType.LONG, "The snapshot with which it ends.", gives_rows=True),
)
"""What is said of one table only."""

_DATA_OPERATIONS = Field(
    "data_operations",
    TEXTS,
    "Which kinds of snapshots to capture; others in the range are an error, but for compaction.",
    default=["append"],
    choices=OPERATIONS,
)
_RANGE_COLUMNS = Field("range_columns", TEXTS, "Columns to tell the changed range of.")
_SHARED = (
    Field(
        "initial",
        (*TEXT, *WHOLE),
        "Where to begin without a checkpoint: latest, a snapshot, a tag or a time. With everything, if not given.",
    ),
    Field(
        "until",
        (*TEXT, *WHOLE),
        "Where to stop: a snapshot, a tag, a branch or a time. Now, if not given.",
    ),
    Field(
        "on_gap",
        TEXT,
        "What to do where history was expired: fail, go on by row lineage, or take the whole table.",
        default="fail",
        choices=("fail", "upserts", "full"),
    ),
    Field(
        "on_schema_change",
        TEXT,
        "What to do where the schema changed: read with the new one, or fail.",
        default="evolve",
        choices=("evolve", "fail"),
    ),
    Field("max_files", WHOLE, "Take at most so many files of each table.", minimum=1),
    Field("max_bytes", WHOLE, "Take at most so many bytes of each table.", minimum=1),
    Field("lease", TRUTH, "Keep the captured files from expiry until the commit, by a tag.", default=False),
    Field("consumer", TEXT, "Who keeps the checkpoint; the workflow and the step, if not given."),
)


def alias_of(table: str) -> str:
    """Return the last part of a table's name."""
    return table.rsplit(".", 1)[-1].strip('`"')


def tables_of(config: Config) -> dict[str, str] | None:
    """Return the source tables by alias; None where they are known only later.

    Of tables with one alias the last is there; see ``_check_aliases``.
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
    """Return what an IpCapture step gives: of the whole, and of each table by its alias."""
    tables = tables_of(config)
    columns = config.get("range_columns", [])
    is_known = isinstance(columns, list) and not _has_dynamic(columns)
    of_ranges = _range_outputs(columns if is_known else [])
    of_table = (*_OF_CAPTURE[1:], *_OF_TABLE, *of_ranges)
    is_one = tables is None or len(tables) == 1
    outputs = {output.name: output for output in (*_OF_CAPTURE, *of_ranges, *(_OF_TABLE if is_one else ()))}
    if tables and (not is_one or isinstance(config["source_tables"], dict)):
        for alias, table in tables.items():
            outputs[alias] = Output(alias, ParamType.MAP, f"The change of {table} alone.", of_table)
    return Outputs(outputs, is_open=tables is None or not is_known)


def _range_outputs(columns: Iterable[str]) -> tuple[Output, ...]:
    """Return the two ends of each column's range; a dot of a nested column becomes an underscore."""
    return tuple(
        Output(
            f"{column.replace('.', '_')}_{side}",
            ParamType.STRING,
            f"The {side} end of {column}'s range.",
            gives_rows=True,
        )
        for column in columns
        for side in ("lower", "upper")
    )


def _check_aliases(node: Node, config: Config, problems: Problems) -> None:
    """Note tables that cannot be told apart by the last part of their names."""
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
            "The tables: a list of names, or a map from a name of your own to each.",
            required=True,
            values=TEXT,
        ),
        Field(
            "capture_mode",
            TEXT,
            "What to leave behind: an ICDC table, the ranges only, a Spark view, or a table read by its path.",
            default="ICDC",
            choices=("ICDC", "RANGE", "VIEW", "PATH"),
        ),
        _DATA_OPERATIONS,
        _RANGE_COLUMNS,
        *_SHARED,
        Field(
            "when_unchanged",
            TEXT,
            "What to do where nothing changed: skip all that comes after the step, or run it.",
            default="skip",
            choices=("skip", "run"),
        ),
    ),
    outputs_of=_capture_outputs,
    check=_check_aliases,
)

IP_COMMIT = StepType(
    "IpCommit",
    "Moves the checkpoint past what a capture step of this workflow captured.",
    config="ip_commit",
    fields=(
        Field("capture_step", TEXT, "The id of the IpCapture step.", required=True),
        Field("capture", TEXT, "The id of the capture; that which the step took, if not given."),
    ),
    outputs=(
        Output("capture_id", ParamType.STRING, "The capture that was committed."),
        Output("committed", ParamType.BOOLEAN, "Whether the checkpoint moved; not so where nothing had changed."),
    ),
)

ICDC = StepType(
    "ICDC",
    "Captures one table into a table of a given name; the checkpoint moves when the workflow has succeeded.",
    config="icdc",
    fields=(
        Field("source_table", TEXT, "The table that changes.", required=True),
        Field(
            "target_table",
            TEXT,
            "The name of the table that is to hold the change; replaced in each run.",
            required=True,
        ),
        _DATA_OPERATIONS,
        _RANGE_COLUMNS,
        *_SHARED,
    ),
    outputs_of=lambda config: _capture_outputs({**config, "source_tables": config.get("source_table")}),
)
