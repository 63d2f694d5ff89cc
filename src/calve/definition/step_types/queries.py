"""Steps that ask an engine: SQL and Spark."""

from pathlib import PurePath

from calve.definition.document import Node
from calve.definition.model.params import ParamType
from calve.definition.problems import Problems
from calve.definition.step_types.model import (
    LISTS,
    MAPS,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    Choose,
    Config,
    Dynamic,
    Field,
    Output,
    Outputs,
    StepType,
)

_FETCH = Field(
    "fetch",
    TEXT,
    "What to keep of the last statement's rows: nothing, the first value, the first row, or all of them.",
    default="none",
    choices=("none", "value", "row", "rows"),
)
_MAX_ROWS = Field("max_rows", WHOLE, "How many rows to keep at most.", default=1000, minimum=1, maximum=100_000)
_EXPECT = Field(
    "expect",
    TEXT,
    "What must hold of the last statement's rows, or the step fails: there is a row, there is none, or every value "
    "of every row is true.",
    choices=("any_row", "no_row", "all_true"),
)
_FETCHED = {
    "value": Output("value", ParamType.STRING, "The first value of the first row."),
    "row": Output("row", ParamType.MAP, "The first row, by column."),
    "rows": Output("rows", ParamType.STRING, "All rows, a JSON list of maps."),
}
_ROW_COUNT = Output("row_count", ParamType.LONG, "How many rows the last statement gave or changed.")


def _fetched(config: Config) -> Outputs:
    """Return what ``fetch`` adds to the outputs."""
    fetch = config.get("fetch", "none")
    if isinstance(fetch, Dynamic):
        return Outputs({output.name: output for output in _FETCHED.values()})
    return Outputs({fetch: _FETCHED[fetch]} if fetch in _FETCHED else {})


_ENDINGS = {".sql": "file", ".py": "application", ".jar": "jar"}


def _check_spark(node: Node, config: Config, problems: Problems) -> None:
    """Note programs that are given as another kind than their name says, and a class without a jar."""
    for name in _ENDINGS.values():
        path = config.get(name)
        ending = PurePath(path).suffix.lower() if isinstance(path, str) else ""
        meant = _ENDINGS.get(ending, name)
        if meant != name:
            message = f"spark.{name} is {path}, which looks like a {ending} file"
            problems.add(node.at(("value", name)), "wrong_file", message, hint=f"write {meant}: {path}")
    if "main_class" in config and "jar" not in config:
        place = node.at(("value", "main_class"))
        problems.add(place, "missing_field", "spark.main_class needs spark.jar", at_key=True)


SQL = StepType(
    "SQL",
    "Runs statements on a database.",
    config="sql",
    fields=(
        Field("url", TEXT, "The database, as an SQLAlchemy URL; a secret, if it holds a password."),
        Field("connection", TEXT, "The name of a connection in the settings."),
        Field("query", TEXT, "The statements, parted by semicolons."),
        Field("file", TEXT, "The path of a file with the statements."),
        Field("parameters", MAPS, "Values for :name in the statements, passed apart from the text."),
        Field("transaction", TRUTH, "Run all statements in one transaction.", default=True),
        _FETCH,
        _MAX_ROWS,
        _EXPECT,
    ),
    choose=(Choose(("url", "connection")), Choose(("query", "file"))),
    outputs=(_ROW_COUNT,),
    outputs_of=_fetched,
)

SPARK = StepType(
    "Spark",
    "Runs SQL in a session of the warm Spark, or an application through spark-submit.",
    config="spark",
    fields=(
        Field("script", TEXT, "SQL text: one statement or several, parted by semicolons."),
        Field("file", TEXT, "The path of a .sql file."),
        Field("application", TEXT, "The path of a .py file; it runs through spark-submit."),
        Field("jar", TEXT, "The path of a jar; it runs through spark-submit."),
        Field("main_class", TEXT, "The class to run of the jar."),
        Field("args", LISTS, "Arguments of the application or the class."),
        Field("parameters", MAPS, "Values for :name in SQL text, passed apart from it."),
        Field("conf", MAPS, "Spark settings by name.", values=(*TEXT, *WHOLE, *TRUTH, ParamType.DOUBLE)),
        Field("packages", TEXTS, "Libraries to fetch, as group:artifact:version."),
        Field("jars", TEXTS, "Jars to add."),
        Field("py_files", TEXTS, "Python files, zips and wheels to add."),
        Field("files", TEXTS, "Files to put beside the application."),
        Field("remote", TEXT, "A Spark Connect server, sc://host:port."),
        Field("master", TEXT, "A cluster: spark://…, yarn, k8s://… or local[n]."),
        Field("deploy_mode", TEXT, "Where the driver runs.", default="client", choices=("client", "cluster")),
        Field("catalog", TEXT, "The catalog of names that name none; that of the settings, if not given."),
        Field("namespace", TEXT, "The namespace of names that name none."),
        Field("branch", TEXT, "The branch that tables are read from and written to, for write-audit-publish."),
        _FETCH,
        _MAX_ROWS,
        _EXPECT,
    ),
    choose=(
        Choose(("script", "file", "application", "jar")),
        Choose(("remote", "master"), least=0),
    ),
    outputs=(_ROW_COUNT,),
    outputs_of=_fetched,
    check=_check_spark,
)
