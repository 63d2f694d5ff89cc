"""Steps that run SQL: SQL and Spark."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from calve.definition.document import Node
from calve.definition.model import ParamType
from calve.definition.problems import Problems
from calve.definition.step_types.step_type import (
    LISTS,
    MAPS,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    Choose,
    Config,
    Content,
    Dynamic,
    Field,
    FileField,
    Output,
    Outputs,
    StepType,
)
from calve.settings import VARIABLE_SUBSTITUTION

_FETCH = Field(
    "fetch",
    TEXT,
    "What to keep of the rows of the last statement: nothing, the first value, the first row, or all of them.",
    default="none",
    choices=("none", "value", "row", "rows"),
)
_MAX_ROWS = Field("max_rows", WHOLE, "The maximum number of rows to keep.", default=1000, minimum=1, maximum=100_000)
_EXPECT = Field(
    "expect",
    TEXT,
    "What must be true of the rows of the last statement, or the step fails: there is a row, there is none, or every "
    "value of every row is true.",
    choices=("any_row", "no_row", "all_true"),
)
_FETCHED = {
    "value": Output("value", ParamType.STRING, "The first value of the first row, if fetch is value."),
    "row": Output("row", ParamType.MAP, "The first row, by column, if fetch is row."),
    "rows": Output("rows", ParamType.STRING, "All rows, as a JSON list of maps, if fetch is rows."),
}
_ROW_COUNT = Output("row_count", ParamType.LONG, "How many rows the last statement returned or wrote, if known.")


def _fetched(config: Config) -> Outputs:
    """Return what ``fetch`` adds to the outputs."""
    fetch = config.get("fetch", "none")
    if isinstance(fetch, Dynamic):
        return Outputs({output.name: output for output in _FETCHED.values()})
    return Outputs({fetch: _FETCHED[fetch]} if fetch in _FETCHED else {})


_ENDINGS = {".sql": "file", ".py": "application", ".jar": "jar"}
_PROGRAMS = ("script", "file", "application", "jar", "function", "merge")

_MERGE = Field(
    "merge",
    MAPS,
    "Merges rows into a table in the cheapest way that the metadata allows.",
    fields=(
        Field("into", TEXT, "The table to merge into.", required=True),
        Field("using", TEXT, "The rows: a table or a query.", required=True, content=Content.SQL),
        Field("keys", TEXTS, "The columns that identify a row.", required=True),
        Field(
            "when_matched",
            (*TEXT, *MAPS),
            "What to do with a row that exists: update all of it, ignore it, delete it, or set columns, each to an SQL "
            "expression over t, the table, and s, the rows.",
            default="update",
            choices=("update", "ignore", "delete"),
            values=TEXT,
            content=Content.SQL,
        ),
        Field(
            "when_not_matched",
            TEXT,
            "What to do with a row that does not exist.",
            default="insert",
            choices=("insert", "ignore"),
        ),
        Field(
            "delete_when",
            TEXT,
            "An SQL condition over s; where it is true, the existing row is deleted.",
            content=Content.SQL,
        ),
        Field(
            "deletes",
            TEXT,
            "The removed rows: a table or a query; their keys are deleted, unless using has them too.",
            content=Content.SQL,
        ),
    ),
)
_DELIVERY = (
    Field(
        "capture",
        TEXT,
        "The id of the capture that the step processes. By default, that of the only capture step before it.",
    ),
    Field(
        "audit",
        (*TEXT, *TEXTS),
        "SQL that checks what was written before others can see it: every value of every row must be true. "
        "Or the paths of .sql files.",
        content=Content.SQL,
    ),
    Field(
        "publish",
        TEXT,
        "When others see what was written to the targets: when the step succeeds, or with the commit of the capture.",
        default="step",
        choices=("step", "commit"),
    ),
)
"""Fields about the delivery to targets."""


def _check_spark(node: Node, config: Config, problems: Problems) -> None:
    """Report programs in the wrong field for their file name, and fields that would have no effect."""
    for name in _ENDINGS.values():
        path = config.get(name)
        ending = PurePath(path).suffix.lower() if isinstance(path, str) else ""
        meant = _ENDINGS.get(ending, name)
        if meant != name:
            message = f"spark.{name} is {path}, which looks like a {ending} file"
            problems.add(node.at(("value", name)), "wrong_file", message, hint=f"write {meant}: {path}")
    _check_needs(node, config, "main_class", ("jar",), problems)
    _check_needs(node, config, "args", ("application", "jar", "function"), problems)
    _check_conf(node, config, problems)
    function = config.get("function")
    if isinstance(function, str) and not all(function.rpartition(":")[::2]):
        place, hint = node.at(("value", "function")), "write jobs.daily:run, or jobs/daily.py:run"
        problems.add(place, "wrong_value", f"spark.function is {function}, which does not name a function", hint=hint)


def _check_conf(node: Node, config: Config, problems: Problems) -> None:
    """Report Spark's own substitution of ``${…}`` where calve resolves references."""
    conf = config.get("conf")
    given = conf.get(VARIABLE_SUBSTITUTION) if isinstance(conf, dict) else None
    if str(given).strip().lower() == "true" and not ("application" in config or "jar" in config):
        message = f"spark.conf: {VARIABLE_SUBSTITUTION} cannot be true, as calve resolves ${{…}} in SQL"
        place, hint = (
            node.at(("value", "conf", "value", VARIABLE_SUBSTITUTION)),
            "leave it out, or run an application or a jar",
        )
        problems.add(place, "wrong_value", message, hint=hint)


def _check_needs(node: Node, config: Config, name: str, needed: tuple[str, ...], problems: Problems) -> None:
    """Report a field that has no effect without one of several others."""
    if name in config and not any(other in config for other in needed):
        message = f"spark.{name} needs {' or '.join(f'spark.{other}' for other in needed)}"
        problems.add(node.at(("value", name)), "missing_field", message, at_key=True)


_SQL_FILE = re.compile(r"\S+\.sql", re.IGNORECASE)


def is_sql_file(text: str) -> bool:
    """Return whether a text is the path of a .sql file rather than SQL, in which no statement is a single word."""
    return _SQL_FILE.fullmatch(text.strip()) is not None


def _sql_files(config: Config) -> Iterator[FileField]:
    if isinstance(path := config.get("file"), str):
        yield FileField("file", path, holds="query")


def _spark_files(config: Config) -> Iterator[FileField]:
    if isinstance(path := config.get("file"), str):
        yield FileField("file", path, holds="script")
    match config.get("audit"):
        case str() as text if is_sql_file(text):
            yield FileField("audit", text.strip(), holds="audit")
        case list() | tuple() as texts:
            for index, text in enumerate(texts):
                if isinstance(text, str) and is_sql_file(text):
                    yield FileField(f"audit[{index}]", text.strip())
        case _:
            pass


SQL = StepType(
    "SQL",
    "Runs statements on a database.",
    config="sql",
    fields=(
        Field("url", TEXT, "The database, as an SQLAlchemy URL; a secret if it contains a password."),
        Field("connection", TEXT, "The name of a connection in the settings."),
        Field("query", TEXT, "The statements, separated by semicolons.", content=Content.SQL),
        Field("file", TEXT, "The path of a file with the statements.", content=Content.VALUES),
        Field(
            "parameters",
            MAPS,
            "Values for :name in the statements, passed separately from the text.",
            content=Content.VALUES,
        ),
        Field("transaction", TRUTH, "Run all statements in one transaction.", default=True),
        _FETCH,
        _MAX_ROWS,
        _EXPECT,
    ),
    choose=(Choose(("url", "connection")), Choose(("query", "file"))),
    outputs=(_ROW_COUNT,),
    outputs_of=_fetched,
    files=_sql_files,
)

SPARK = StepType(
    "Spark",
    "Runs SQL, a merge or a Python function in a Spark session, or an application with spark-submit.",
    config="spark",
    fields=(
        Field("script", TEXT, "SQL: one or more statements, separated by semicolons.", content=Content.SQL),
        Field("file", TEXT, "The path of a .sql file.", content=Content.VALUES),
        Field("application", TEXT, "The path of a .py file to run with spark-submit."),
        Field("jar", TEXT, "The path of a jar to run with spark-submit."),
        Field("main_class", TEXT, "The class of the jar to run."),
        Field(
            "function",
            TEXT,
            "A Python function, as module:name or path.py:name; it is called with a Spark session.",
        ),
        _MERGE,
        Field("args", LISTS, "Arguments of the application, the class or the function."),
        Field(
            "parameters",
            MAPS,
            "Values for :name in SQL, passed separately from the text; for a function, its keyword arguments.",
            content=Content.VALUES,
        ),
        Field("conf", MAPS, "Spark settings by name.", values=(*TEXT, *WHOLE, *TRUTH, ParamType.DOUBLE)),
        Field("packages", TEXTS, "Libraries to download, as group:artifact:version."),
        Field("jars", TEXTS, "Jars to add."),
        Field("py_files", TEXTS, "Python files, zips and wheels to add."),
        Field("files", TEXTS, "Files to place beside the application."),
        Field("remote", TEXT, "The address of a Spark Connect server, sc://host:port."),
        Field("master", TEXT, "The master of a cluster: spark://…, yarn, k8s://… or local[n]."),
        Field("deploy_mode", TEXT, "Where the driver runs.", default="client", choices=("client", "cluster")),
        Field("catalog", TEXT, "The catalog of table names that do not name one. By default, that of the settings."),
        Field("namespace", TEXT, "The namespace of table names that do not name one."),
        Field("branch", TEXT, "The branch to read tables from and write them to, for write-audit-publish."),
        *_DELIVERY,
        _FETCH,
        _MAX_ROWS,
        _EXPECT,
    ),
    choose=(
        Choose(_PROGRAMS),
        Choose(("remote", "master"), least=0),
    ),
    outputs=(
        _ROW_COUNT,
        Output("published", ParamType.BOOLEAN, "Whether the step published what it wrote to its targets."),
        Output("branch", ParamType.STRING, "The branch that holds what it wrote until the commit; otherwise empty."),
    ),
    outputs_of=_fetched,
    check=_check_spark,
    files=_spark_files,
    delivers=True,
)
