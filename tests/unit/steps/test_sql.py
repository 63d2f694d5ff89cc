"""SQL runs statements on a database, binds values apart from the text, and gives what was asked for."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import create_engine, make_url, text
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.programs import workspace

from calve.engine import Outcome, State, StepAddress
from calve.steps.processes.fork_server import ForkServers
from calve.steps.sql import WORK, Sql, split
from calve.steps.sql.results import plain
from calve.store import open_store

Run = Callable[..., Outcome]
FORKS = ForkServers(WORK, workspace(Path("/")))
"""One warm process for all tests here: it takes a second to start."""


@pytest.fixture(scope="module", autouse=True)
def _ended() -> Iterator[None]:
    """End the process in the end."""
    yield
    FORKS.close()


def _sql(folder: Path, **connections: str) -> Sql:
    """Return what runs SQL steps of a project."""
    return Sql(connections, folder, f"sqlite:///{folder}/.calve/state.db", FORKS)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database, of both kinds in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.db"
    return str(request.getfixturevalue("postgres_database"))


@pytest.fixture
def run(url: str, tmp_path: Path) -> Run:
    """Return a way to run a SQL step."""

    def run(query: str, **sql: Any) -> Outcome:
        context = FakeContext(tmp_path, {"sql": {"url": url, "query": query, **sql}})
        return _sql(tmp_path).execute(context)

    return run


def _told(url: str, query: str) -> Any:
    """Return the first value of a query, by another connection."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return connection.execute(text(query)).scalar()
    finally:
        engine.dispose()


def test_statements_run_in_order(run: Run, url: str) -> None:
    """And what they did is there."""
    outcome = run("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2), (3)")
    assert (outcome.state, outcome.outputs) == (State.DONE, {"row_count": 2})
    assert _told(url, "SELECT sum(n) FROM t") == 6


def test_one_value_one_row_or_all_rows_are_kept(run: Run) -> None:
    """As fetch says."""
    query = "SELECT 1 AS n, 'a' AS name UNION ALL SELECT 2, NULL ORDER BY 1"
    assert run(query).outputs == {"row_count": 2}
    assert run(query, fetch="value").outputs == {"row_count": 2, "value": "1"}
    assert run(query, fetch="row").outputs == {"row_count": 2, "row": {"n": 1, "name": "a"}}
    rows = json.loads(run(query, fetch="rows").outputs["rows"])
    assert rows == [{"n": 1, "name": "a"}, {"n": 2, "name": None}]


def test_no_row_gives_an_empty_value(run: Run) -> None:
    """As does a null, since params know none."""
    nothing = "SELECT 1 AS n WHERE 1 = 0"
    assert run(nothing, fetch="value").outputs == {"row_count": 0, "value": ""}
    assert run(nothing, fetch="row").outputs == {"row_count": 0, "row": {}}
    assert run(nothing, fetch="rows").outputs == {"row_count": 0, "rows": "[]"}
    assert run("SELECT NULL AS n", fetch="value").outputs["value"] == ""
    assert run("SELECT NULL AS n", fetch="row").outputs["row"] == {"n": ""}


def test_more_rows_than_allowed_are_an_error(run: Run) -> None:
    """Nothing is cut off in silence, also where the limit came as text."""
    query = "SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3"
    outcome = run(query, fetch="rows", max_rows="2")
    assert outcome.state is State.FATAL_ERROR
    assert outcome.message == ("The last statement gave 3 rows, and max_rows is 2. Select fewer, or raise max_rows.")
    assert run(query, fetch="rows", max_rows=3).state is State.DONE
    assert run(query, fetch="value", max_rows=1).outputs["row_count"] == 3


@pytest.mark.parametrize("value", ["'; DROP TABLE t; --", '"; DROP TABLE t', "☃", "%s %(x)s {0} :n", "\\"])
def test_a_value_stays_a_value(run: Run, url: str, value: str) -> None:
    """Whatever it looks like."""
    run("CREATE TABLE t (name TEXT)")
    outcome = run("INSERT INTO t VALUES (:name)", parameters={"name": value})
    assert outcome.state is State.DONE
    assert _told(url, "SELECT name FROM t") == value


def test_names_are_bound_only_in_code(run: Run) -> None:
    """Not in quotes or comments; a percent sign is a percent sign."""
    query = """
        -- :comment; and more
        SELECT ':text; :more' AS a, /* :block; */ :n AS b, '100%' AS c, 'it''s :x' AS d, '\\:y' AS e
    """
    row = run(query, parameters={"n": 5}, fetch="row").outputs["row"]
    assert row == {"a": ":text; :more", "b": 5, "c": "100%", "d": "it's :x", "e": "\\:y"}


def test_a_list_stands_after_in(run: Run) -> None:
    """With as many values as it has, even none."""
    query = "SELECT count(*) FROM (SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3) AS t WHERE n IN :wanted"
    assert run(query, parameters={"wanted": [1, 3, 9]}, fetch="value").outputs["value"] == "2"
    assert run(query, parameters={"wanted": []}, fetch="value").outputs["value"] == "0"


def test_a_name_without_a_value_is_reported(run: Run) -> None:
    """Before anything runs."""
    outcome = run("CREATE TABLE t (n INTEGER); SELECT :a, :b, :c", parameters={"b": 1})
    assert (outcome.state, outcome.message.endswith("a, c.")) == (State.FATAL_ERROR, True)
    assert run("CREATE TABLE t (n INTEGER)").state is State.DONE


def test_one_transaction_does_all_or_nothing(run: Run, url: str) -> None:
    """Also of what makes tables."""
    run("CREATE TABLE t (n INTEGER)")
    outcome = run("CREATE TABLE u (n INTEGER); INSERT INTO t VALUES (1); SELECT * FROM nowhere")
    assert outcome.state is State.FATAL_ERROR
    assert outcome.message.startswith("sql.query, line 1 (statement 3 of 3): ")
    assert _told(url, "SELECT count(*) FROM t") == 0
    assert run("CREATE TABLE u (n INTEGER)").state is State.DONE


def test_without_a_transaction_each_statement_counts_for_itself(run: Run, url: str) -> None:
    """What was done before the error stays."""
    run("CREATE TABLE t (n INTEGER)")
    outcome = run("INSERT INTO t VALUES (1); SELECT * FROM nowhere", transaction=False)
    assert (outcome.state, _told(url, "SELECT count(*) FROM t")) == (State.FATAL_ERROR, 1)
    assert run("VACUUM", transaction=False).state is State.DONE
    assert run("SELECT 1 AS a", transaction=False, fetch="value").outputs["value"] == "1"


@pytest.mark.parametrize(
    ("expect", "query", "state"),
    [
        ("any_row", "SELECT 1 AS a", State.DONE),
        ("any_row", "SELECT 1 AS a WHERE 1 = 0", State.USER_ERROR),
        ("no_row", "SELECT 1 AS a WHERE 1 = 0", State.DONE),
        ("no_row", "SELECT 1 AS a", State.USER_ERROR),
        ("all_true", "SELECT 1 = 1 AS a, 2 AS b, 'true' AS c", State.DONE),
        ("all_true", "SELECT 1 = 1 AS a UNION ALL SELECT 1 = 0", State.USER_ERROR),
        ("all_true", "SELECT 1 AS a, NULL AS b", State.USER_ERROR),
        ("all_true", "SELECT 1 AS a WHERE 1 = 0", State.DONE),
        ("any_row", "CREATE TABLE w (n INTEGER)", State.FATAL_ERROR),
    ],
)
def test_what_is_expected_must_hold(run: Run, expect: str, query: str, state: State) -> None:
    """Or the step fails."""
    assert run(query, expect=expect).state is state


def test_what_was_not_expected_is_rolled_back(run: Run, url: str) -> None:
    """And the message tells the row."""
    run("CREATE TABLE t (n INTEGER)")
    outcome = run("INSERT INTO t VALUES (7); SELECT n FROM t", expect="no_row")
    assert outcome.message == "The last statement gave 1 rows, and none was expected: the first is n = 7."
    assert _told(url, "SELECT count(*) FROM t") == 0


def test_a_statement_without_rows_has_none_to_fetch(run: Run) -> None:
    """That is told rather than left out."""
    assert "returns no rows" in run("CREATE TABLE t (n INTEGER)", fetch="rows").message


def test_many_rows_are_counted_but_not_held(run: Run) -> None:
    """Only max_rows of them are kept."""
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n"
    assert run(query, fetch="row").outputs == {"row_count": 20000, "row": {"i": 1}}
    assert run(f"SELECT * FROM ({query}) AS t", expect="all_true").outputs == {"row_count": 20000}


def test_an_interruption_cancels_the_statement(url: str, tmp_path: Path) -> None:
    """And nothing of its transaction stays."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    context = FakeContext(tmp_path, {"sql": {"url": url, "query": f"CREATE TABLE t (n INTEGER); {endless}"}})
    ended: list[Outcome] = []
    thread = threading.Thread(target=lambda: ended.append(_sql(tmp_path).execute(context)))
    thread.start()
    while "2 of 2" not in context.text:
        time.sleep(0.01)
    context.interruption.set()
    thread.join()
    assert ended[0].state is State.STOPPED
    again = FakeContext(tmp_path, {"sql": {"url": url, "query": "CREATE TABLE t (n INTEGER)"}})
    assert _sql(tmp_path).execute(again).state is State.DONE


def test_an_interrupted_step_runs_no_statement(url: str, tmp_path: Path) -> None:
    """However short it is."""
    context = FakeContext(tmp_path, {"sql": {"url": url, "query": "SELECT 1"}})
    context.interruption.set()
    assert _sql(tmp_path).execute(context).state is State.STOPPED
    assert not context.text


def test_a_connection_of_the_settings_is_found_by_name(tmp_path: Path) -> None:
    """Another name is told with those that there are; a relative file is one of the project."""
    sql = _sql(tmp_path, warehouse="sqlite:///house.db")
    query = {"query": "SELECT 1 AS a", "fetch": "value"}
    assert sql.execute(FakeContext(tmp_path, {"sql": query | {"connection": "warehouse"}})).outputs["value"] == "1"
    assert (tmp_path / "house.db").exists()
    wrong = sql.execute(FakeContext(tmp_path, {"sql": query | {"connection": "werehouse"}}))
    assert wrong.state is State.FATAL_ERROR
    assert wrong.message == (
        "There is no connection werehouse for demo.pipeline in the settings. [connections] has for it: warehouse."
    )


def test_the_statements_may_stand_in_a_file(tmp_path: Path) -> None:
    """Of the project."""
    (tmp_path / "check.sql").write_text("SELECT 'é' AS a;\n", encoding="utf-8")
    sql = {"url": "sqlite://", "file": "check.sql", "fetch": "value"}
    assert _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": sql})).outputs["value"] == "é"
    missing = _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": sql | {"file": "none.sql"}}))
    assert (missing.state, "none.sql" in missing.message) == (State.FATAL_ERROR, True)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ({"query": "SELECT 1"}, "sql.url, sql.connection"),
        ({"url": "sqlite://", "query": " ; -- nothing\n;"}, "no statement"),
        (
            {"url": "sqlite://", "query": "SELECT 1", "fetch": "all"},
            "sql.fetch must be none, value, row or rows, not 'all'",
        ),
        ({"url": "sqlite://", "query": "SELECT 1", "max_rows": 0}, "sql.max_rows is 0; the minimum is 1"),
        ({"url": "sqlite://", "query": "SELECT 1", "max_rows": 100_001}, "the maximum is 100000"),
        ({"url": "hush", "query": "SELECT 1"}, "sql.url is not a database URL"),
        ({"url": "nodb://u:hush@h/d", "query": "SELECT 1"}, "no driver for nodb"),
    ],
)
def test_what_makes_no_sense_is_fatal(tmp_path: Path, sql: dict[str, Any], said: str) -> None:
    """And never tells a password."""
    outcome = _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": sql}))
    assert outcome.state is State.FATAL_ERROR
    assert said in outcome.message
    assert "hush" not in outcome.message


def test_a_database_that_does_not_answer_is_trouble_of_the_platform(tmp_path: Path) -> None:
    """The message names it, without the password."""
    sql = {"url": "postgresql+psycopg://me:hush@127.0.0.1:1/db", "query": "SELECT 1"}
    outcome = _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": sql}))
    assert outcome.state is State.INFRASTRUCTURE_ERROR
    assert "postgresql+psycopg://me@127.0.0.1:1/db" in outcome.message
    assert "hush" not in outcome.message


@pytest.mark.parametrize(
    ("query", "given", "lines"),
    [
        (
            "SELECT 1;\n\n-- all\nSELECT *\n  FROM ordrs",
            {},
            {
                "sqlite": "sql.query, line 5 (statement 2 of 2): no such table: ordrs\n"
                "  5 |   FROM ordrs\n    |        ^",
                "postgresql": 'sql.query, line 5 (statement 2 of 2): relation "ordrs" does not exist.\n'
                "  5 |   FROM ordrs\n    |        ^",
            },
        ),
        (
            "SELECT 'form', *\nFORM t -- form",
            {},
            {
                "sqlite": 'sql.query, line 2: near "FORM": syntax error\n  2 | FORM t -- form\n    | ^',
                "postgresql": 'sql.query, line 2: syntax error at or near "FORM".\n  2 | FORM t -- form\n    | ^',
            },
        ),
        (
            "SELECT :first AS a, '100%' AS p,\n\t:second AS b, nope FROM (SELECT 1 AS n) AS t WHERE n IN :many",
            {"first": "a long text, longer than its name", "second": 2, "many": [1, 2, 3]},
            {
                "sqlite": "sql.query, line 2: no such column: nope\n"
                "  2 |  :second AS b, nope FROM (SELECT 1 AS n) AS t WHERE n IN :many\n    |                ^",
                "postgresql": 'sql.query, line 2: column "nope" does not exist.\n'
                "  2 |  :second AS b, nope FROM (SELECT 1 AS n) AS t WHERE n IN :many\n    |                ^",
            },
        ),
    ],
)
def test_an_error_names_its_place(run: Run, url: str, query: str, given: dict[str, Any], lines: dict[str, str]) -> None:
    """The cause in one line, then the line of the script with a caret; another try is not worth it."""
    for is_one in (True, False):
        outcome = run(query, parameters=given, transaction=is_one)
        assert (outcome.state, outcome.message) == (State.FATAL_ERROR, lines[url.partition(":")[0].partition("+")[0]])


def test_an_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    """As the step names it; a line that is cut short still has its caret."""
    (tmp_path / "copy.sql").write_text(f"SELECT {'1, ' * 60}nope, {'1, ' * 60}1 FROM (SELECT 1 AS n)")
    context = FakeContext(tmp_path, {"sql": {"url": "sqlite://", "file": "copy.sql"}})
    head, line, caret = _sql(tmp_path).execute(context).message.split("\n")
    assert head == "copy.sql, line 1: no such column: nope"
    assert line[caret.index("^") :].startswith("nope,")
    assert (line.count("…"), len(line) < 140) == (2, True)


@pytest.mark.parametrize(
    ("query", "state"),
    [
        ("SELECT 1 / 0", State.FATAL_ERROR),
        ("SELECT CAST('x' AS integer)", State.FATAL_ERROR),
        ("CREATE TABLE c (n integer PRIMARY KEY); INSERT INTO c VALUES (1), (1)", State.USER_ERROR),
        ("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$", State.INFRASTRUCTURE_ERROR),
        ("DO $$ BEGIN RAISE EXCEPTION 'why'; END $$", State.USER_ERROR),
        ("SET statement_timeout = 50; SELECT pg_sleep(5)", State.USER_ERROR),
    ],
)
def test_what_postgresql_says_decides_whether_it_is_tried_again(
    postgres_database: str, tmp_path: Path, query: str, state: State
) -> None:
    """By its SQLSTATE."""
    context = FakeContext(tmp_path, {"sql": {"url": postgres_database, "query": query}})
    assert _sql(tmp_path).execute(context).state is state


def test_a_locked_file_is_tried_again(tmp_path: Path) -> None:
    """Whoever holds it will let go."""
    url = f"sqlite:///{tmp_path}/busy.db?timeout=0"
    holder = create_engine(url)
    with holder.connect() as connection:
        connection.execute(text("CREATE TABLE t (n INTEGER)"))
        connection.commit()
        connection.exec_driver_sql("BEGIN EXCLUSIVE")
        sql = {"url": url, "query": "INSERT INTO t VALUES (1)"}
        outcome = _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": sql}))
    holder.dispose()
    assert (outcome.state, "locked" in outcome.message) == (State.INFRASTRUCTURE_ERROR, True)


def test_a_database_that_refuses_us_is_not_asked_again(postgres_url: str, tmp_path: Path) -> None:
    """No such database, user or folder."""
    for url, said in [
        (postgres_url.rpartition("/")[0] + "/nope", 'database "nope" does not exist'),
        (postgres_url.replace("postgres@", "nobody@"), 'role "nobody" does not exist'),
        (f"sqlite:///{tmp_path}/no/folder.db", "unable to open database file"),
    ]:
        outcome = _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": {"url": url, "query": "SELECT 1"}}))
        assert (outcome.state, said in outcome.message) == (State.FATAL_ERROR, True)
        assert "refuses the connection" in outcome.message


def test_a_connection_that_is_cut_is_trouble_of_the_platform(postgres_database: str, tmp_path: Path) -> None:
    """Not of the statement."""
    query = "SELECT pg_terminate_backend(pg_backend_pid())"
    context = FakeContext(tmp_path, {"sql": {"url": postgres_database, "query": query}})
    assert _sql(tmp_path).execute(context).state is State.INFRASTRUCTURE_ERROR


def test_postgresql_casts_moments_and_dollar_quotes(postgres_database: str, tmp_path: Path) -> None:
    """A value is of the type that the statement needs."""
    query = """
        CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE plpgsql AS $body$ BEGIN RETURN n * 2; END; $body$;
        CREATE TABLE t (day date);
        INSERT INTO t VALUES (:day);
        SELECT day, :n::int + 1 AS more, twice(4) AS twice, (ARRAY[1,2,3])[1:2] AS slice, sum(1.5) AS sum
        FROM t WHERE day = :day GROUP BY day
    """
    sql = {"url": postgres_database, "query": query, "parameters": {"day": "2026-11-15", "n": "4"}, "fetch": "row"}
    outcome = _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": sql}))
    assert outcome.message == ""
    assert outcome.outputs["row"] == {"day": "2026-11-15", "more": 5, "twice": 8, "slice": [1, 2], "sum": 1.5}


def test_a_trigger_of_sqlite_is_one_statement(tmp_path: Path) -> None:
    """Though there are semicolons in it."""
    query = """
        CREATE TABLE t (n INTEGER); CREATE TABLE u (n INTEGER);
        CREATE TRIGGER copy AFTER INSERT ON t BEGIN INSERT INTO u VALUES (new.n); INSERT INTO u VALUES (0); END;
        INSERT INTO t VALUES (5); SELECT count(*) FROM u
    """
    sql = {"url": "sqlite://", "query": query, "fetch": "value"}
    assert _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": sql})).outputs["value"] == "2"


@pytest.mark.parametrize(
    ("dialect", "text", "statements"),
    [
        ("postgresql", "a; b ;; -- c\n; /* ; */", ["a", "b"]),
        ("postgresql", "a $$ ; $$; $x$ $$ ; $x$", ["a $$ ; $$", "$x$ $$ ; $x$"]),
        ("postgresql", "/* ; /* ; */ ; */ a", ["/* ; /* ; */ ; */ a"]),
        ("sqlite", "/* ; /* ; */ a; b", ["/* ; /* ; */ a", "b"]),
        ("postgresql", r"SELECT E'\';', 'a\'; b", [r"SELECT E'\';', 'a\'", "b"]),
        ("mysql", r"SELECT 'a\';b'; c", [r"SELECT 'a\';b'", "c"]),
        ("mysql", 'SELECT "a\\";b", `c;d`; e', ['SELECT "a\\";b", `c;d`', "e"]),
        ("postgresql", 'SELECT "a;""b"; c', ['SELECT "a;""b"', "c"]),
        ("postgresql", "a /* never ends ;", ["a /* never ends ;"]),
        ("postgresql", "", []),
    ],
)
def test_statements_end_at_semicolons_in_code(dialect: str, text: str, statements: list[str]) -> None:
    """Not at those in quotes and comments."""
    assert [statement.sql for statement in split(text, dialect)] == statements


def test_names_are_found_once_and_only_names() -> None:
    """Casts, slices and assignments have colons as well."""
    (statement,) = split("SELECT :a, :a, x::int, y[1:2], y[n:m], @v := 1, ':q' WHERE z IN (:b) AND w IN :c", "sqlite")
    assert (sorted(statement.names), sorted(statement.lists)) == (["a", "b", "c"], ["c"])
    assert statement.template.count(r"\:") == 6


def test_values_become_those_of_json() -> None:
    """Without losing what a double cannot hold."""
    assert plain(Decimal(5)) == 5
    assert plain(Decimal("1.50")) == 1.5
    assert plain(Decimal("0.1234567890123456789")) == "0.1234567890123456789"
    assert plain(Decimal("NaN")) == "NaN"
    assert plain(float("inf")) == "inf"
    assert plain(b"\x00\xff") == "00ff"
    assert plain({"a": [Decimal(1), None]}) == {"a": [1, None]}
    assert plain(UUID(int=1)) == "00000000-0000-0000-0000-000000000001"


def test_the_log_tells_the_statements_and_not_the_values(tmp_path: Path) -> None:
    """Nor the address."""
    sql = {"url": f"sqlite:///{tmp_path}/hush.db", "query": "SELECT :v AS a", "parameters": {"v": "hush"}}
    context = FakeContext(tmp_path, {"sql": sql})
    _sql(tmp_path).execute(context)
    assert context.text == "-- 1 of 1\nSELECT :v AS a\n-- 1 rows\n"


def test_there_is_nothing_to_end(tmp_path: Path) -> None:
    """A transaction ends with its connection."""
    _sql(tmp_path).terminate(FakeContext(tmp_path))


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("", []),
        (" ; ;\n", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';'; SELECT 2", ["SELECT ';'", "SELECT 2"]),
        ("SELECT 'it''s; fine'; SELECT 2", ["SELECT 'it''s; fine'", "SELECT 2"]),
        (r"SELECT 'a\';b'; SELECT 2", [r"SELECT 'a\';b'", "SELECT 2"]),
        ("SELECT r'\\'; SELECT 2", ["SELECT r'\\'", "SELECT 2"]),
        ('SELECT "a;b"; SELECT 2', ['SELECT "a;b"', "SELECT 2"]),
        ("SELECT `a;``b` FROM t; SELECT 2", ["SELECT `a;``b` FROM t", "SELECT 2"]),
        ("SELECT 1 -- no; end\n; SELECT 2", ["SELECT 1 -- no; end", "SELECT 2"]),
        ("SELECT 1 /* no; end */; SELECT 2", ["SELECT 1 /* no; end */", "SELECT 2"]),
        ("SELECT 1 /* a /* b; */ c; */; SELECT 2", ["SELECT 1 /* a /* b; */ c; */", "SELECT 2"]),
        ("-- only; a comment\n; /* and; another */", []),
        ("-- it's a comment\nSELECT 1; SELECT 2", ["-- it's a comment\nSELECT 1", "SELECT 2"]),
        ("SELECT '--'; SELECT '/*'; SELECT 3", ["SELECT '--'", "SELECT '/*'", "SELECT 3"]),
        ("SELECT 1 /* never closed; ", ["SELECT 1 /* never closed;"]),
        ("'x'", ["'x'"]),
    ],
)
def test_statements_of_spark_end_at_semicolons_outside_quotes_and_comments(script: str, statements: list[str]) -> None:
    """A semicolon ends a statement unless quotes or a comment hold it; each is found where it begins."""
    found = split(script, "spark")
    assert [statement.sql for statement in found] == statements
    assert all(script[each.start :].startswith(each.sql) for each in found)


def test_references_in_a_file_are_resolved(url: str, tmp_path: Path) -> None:
    """As those of a text; what is escaped is text."""
    (tmp_path / "load.sql").write_text("SELECT '${day}' AS day, '$${day}' AS literal")
    context = FakeContext(tmp_path, {"sql": {"url": url, "file": "load.sql", "fetch": "row"}}, values={"day": 20260301})
    outcome = _sql(tmp_path).execute(context)
    assert outcome.outputs["row"] == {"day": "20260301", "literal": "${day}"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1,\n ${dya}", "load.sql:2:2: Param [sql.file]: Cannot find the referenced param [dya]"),
        ("SELECT '${ day }'", "load.sql:1:9: ${ day } is not a reference. Write ${name}"),
        (None, "sql.file cannot be read: "),
    ],
)
def test_a_file_that_cannot_be_resolved_fails_the_step(tmp_path: Path, text: str | None, message: str) -> None:
    """Before a connection is opened; no retry cures it."""
    if text is not None:
        (tmp_path / "load.sql").write_text(text)
    outcome = _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": {"url": "sqlite:///x.db", "file": "load.sql"}}))
    assert outcome.state is State.FATAL_ERROR
    assert outcome.message.startswith(message)
    assert not (tmp_path / "x.db").exists()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give a state database in the place where the step's project keeps it."""
    open_store(f"sqlite:///{tmp_path}/.calve/state.db").close()
    (tmp_path / "x").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / ".calve/state.db")
    (tmp_path / "folder").symlink_to(tmp_path / ".calve")
    (tmp_path / "hard.db").hardlink_to(tmp_path / ".calve/state.db")
    return tmp_path / ".calve"


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///{project}/.calve/state.db",
        "sqlite:///.calve/state.db",
        "sqlite:///./x/../.calve//state.db",
        "sqlite:///{project}/link.db",
        "sqlite:///folder/state.db",
        "sqlite:///{project}/hard.db",
        "sqlite:///file:{project}/.calve/state.db?uri=true",
        "sqlite:///file:{project}/.calve/st%61te.db?mode=rw&uri=true",
        "sqlite:///file://localhost{project}/.calve/state.db?uri=true",
        "sqlite:///file:.calve/state.db?immutable=1&uri=true",
        "sqlite:////proc/self/root{project}/.calve/state.db",
        "sqlite+pysqlite:///{project}/.calve/state.db?timeout=1",
    ],
)
@pytest.mark.parametrize("way", ["url", "connection"])
def test_no_step_connects_to_the_file_of_the_state_database(tmp_path: Path, home: Path, url: str, way: str) -> None:
    """By whatever name it is called: one made itself administrator that way."""
    url = url.format(project=tmp_path)
    given = {"url": url} if way == "url" else {"connection": "own"}
    sql = {**given, "query": "UPDATE calve_version SET version_num = 'attacked'", "transaction": False}
    outcome = _sql(tmp_path, own=url).execute(FakeContext(tmp_path, {"sql": sql}))
    assert outcome.state is State.FATAL_ERROR
    assert "is calve's state database: a step that connects to it could make itself administrator" in outcome.message
    assert _told(f"sqlite:///{home}/state.db", "SELECT version_num FROM calve_version") != "attacked"


@pytest.mark.parametrize("name", ["'{home}/state.db'", "'{home}/' || 'state.db'", "'file:{home}/state.db'", ":file"])
def test_no_step_attaches_the_state_database(tmp_path: Path, home: Path, name: str) -> None:
    """As a second database of a harmless one, also not by a name that is computed."""
    query = f"/**/attach {name.format(home=home)} AS [s]; UPDATE s.calve_version SET version_num = 'attacked'"
    values = {"file": f"{home}/state.db"} if name == ":file" else {}
    sql = {"url": "sqlite:///file:other.db?uri=true", "query": query, "transaction": False, "parameters": values}
    outcome = _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": sql}))
    assert outcome.state is State.FATAL_ERROR
    assert "is calve's state database" in outcome.message
    assert _told(f"sqlite:///{home}/state.db", "SELECT version_num FROM calve_version") != "attacked"


def test_other_databases_can_be_attached(tmp_path: Path) -> None:
    """Only that of the state cannot."""
    query = "ATTACH 'second.db' AS s; CREATE TABLE s.t (n INTEGER); INSERT INTO s.t VALUES (7); SELECT n FROM s.t"
    sql = {"url": "sqlite:///first.db", "query": query, "transaction": False, "fetch": "value"}
    assert _sql(tmp_path).execute(FakeContext(tmp_path, {"sql": sql})).outputs["value"] == "7"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://postgres@127.0.0.1:{port}/{name}",
        "postgresql://somebody:else@localhost:{port}/{name}",
        "postgresql+psycopg2://somebody@[::1]:{port}/{name}",
        "postgresql+psycopg://postgres@/{name}?host=127.0.0.1&port={port}",
        "postgresql+psycopg://postgres@/{name}?host=localhost:{port}",
        "postgresql+psycopg://postgres@127.0.0.1:{port}/postgres?dbname={name}",
        "postgresql+psycopg://postgres@192.0.2.1:{port}/{name}?hostaddr=127.0.0.1",
        "postgresql+psycopg://postgres@192.0.2.1,127.0.0.1/{name}?port={port}",
        "postgresql+asyncpg://postgres@127.1:{port}/{name}",
    ],
)
def test_no_step_connects_to_the_state_database_in_postgresql(
    tmp_path: Path, postgres_state: str, address: str
) -> None:
    """Whatever user, driver, name of the host or way of writing the address is used."""
    own = make_url(postgres_state)
    url = address.format(port=own.port, name=own.database)
    sql = {"url": url, "query": "UPDATE calve_version SET version_num = 'attacked'"}
    outcome = Sql({}, tmp_path, postgres_state, FORKS).execute(FakeContext(tmp_path, {"sql": sql}))
    assert outcome.state is State.FATAL_ERROR
    assert "is calve's state database" in outcome.message
    assert _told(postgres_state, "SELECT version_num FROM calve_version") != "attacked"


def test_a_state_database_is_known_by_what_it_holds(tmp_path: Path, postgres_state: str) -> None:
    """Where its address does not tell: behind a proxy, say."""
    sql = {"url": postgres_state, "query": "SELECT 1"}
    elsewhere = make_url(postgres_state).set(host="192.0.2.1").render_as_string(hide_password=False)
    outcome = Sql({}, tmp_path, elsewhere, FORKS).execute(FakeContext(tmp_path, {"sql": sql}))
    assert "is calve's state database" in outcome.message


def test_another_database_of_the_same_server_is_open_to_steps(
    tmp_path: Path, postgres_state: str, postgres_database: str
) -> None:
    """Its own roles say who may do what there."""
    sql = {"url": postgres_database, "query": "SELECT 1", "fetch": "value"}
    outcome = Sql({}, tmp_path, postgres_state, FORKS).execute(FakeContext(tmp_path, {"sql": sql}))
    assert outcome.outputs["value"] == "1"


@pytest.mark.parametrize(
    ("workflow", "name", "is_there"),
    [
        ("etl", "all", True),
        ("sales.eu.etl", "all", True),
        ("sales.eu.etl", "sales.eu.warehouse", True),
        ("sales.eu.west.etl", "sales.eu.warehouse", True),
        ("sales.etl", "sales.eu.warehouse", False),
        ("sales.europe.etl", "sales.eu.warehouse", False),
        ("marketing.etl", "sales.eu.warehouse", False),
        ("etl", "sales.eu.warehouse", False),
    ],
)
def test_a_connection_is_for_the_workflows_of_its_namespace(
    tmp_path: Path, workflow: str, name: str, *, is_there: bool
) -> None:
    """As a secret is; nobody else is told that there is one."""
    address = "sqlite:///house.db"
    sql = _sql(tmp_path, **{"all": address, "sales.eu.warehouse": address})
    context = FakeContext(
        tmp_path, {"sql": {"connection": name, "query": "SELECT 1"}}, place=StepAddress(workflow, 1, "a")
    )
    outcome = sql.execute(context)
    assert (outcome.state is State.DONE) == is_there
    if not is_there:
        expected = f"There is no connection {name} for {workflow} in the settings. [connections] has for it: all."
        assert outcome.message == expected


def test_statements_run_beside_the_worker(url: str, tmp_path: Path) -> None:
    """A process that dies takes neither the worker nor the next step with it."""
    query = "SELECT 1" if url.startswith("postgresql") else "SELECT hex(zeroblob(10))"
    context = FakeContext(tmp_path, {"sql": {"url": url, "query": query, "fetch": "value"}})
    importing = {"PATH": os.defpath, "PYTHONPATH": str(Path(__file__).parents[3])}
    forks = ForkServers("tests.unit.steps.programs:killed", workspace(tmp_path, environment=importing))
    died = Sql({}, tmp_path, "sqlite:///none.db", forks).execute(context)
    assert "was killed here" in context.text
    forks.close()
    assert (died.state, died.message) == (
        State.PLATFORM_ERROR,
        "The process that ran the step died.",
    )
    assert _sql(tmp_path).execute(context).state is State.DONE
