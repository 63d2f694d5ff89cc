"""``calve doctor``: checks of this installation."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from calve.cli.output import print_json
from calve.cli.state import State, json_option
from calve.errors import CalveError

if TYPE_CHECKING:
    from calve.settings import Settings

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "wrong": ("✗", "red")}
_NEWEST, _SHOWN = 1_000, 5
_WAL_SAFE = (3, 51, 3)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    check: str
    status: str
    detail: str
    remedy: str = ""


def check_python(_: State) -> Iterator[Finding]:
    """Report the version of Python."""
    yield Finding("python", "ok", sys.version.split()[0])


def check_sqlite(_: State) -> Iterator[Finding]:
    """Warn about versions of SQLite with the WAL-reset bug."""
    import sqlite3

    if sqlite3.sqlite_version_info >= _WAL_SAFE:
        yield Finding("sqlite", "ok", sqlite3.sqlite_version)
        return
    yield Finding(
        "sqlite",
        "warning",
        f"{sqlite3.sqlite_version}: before 3.51.3, two processes can, rarely, damage a database (WAL reset)",
        "Upgrade SQLite, or use PostgreSQL where several processes write.",
    )


def check_settings(state: State) -> Iterator[Finding]:
    """Read the settings."""
    from calve.settings import FILE

    file = state.settings.project / FILE
    yield Finding("settings", "ok", str(file) if file.is_file() else f"defaults (there is no {FILE})")


def check_java(state: State) -> Iterator[Finding]:
    """Find the Java that Spark needs."""
    from calve.lake import java

    found = java.find(state.settings.spark.java_home)
    yield Finding("java", "ok", f"{found.version} ({found.executable})")


def check_jars(state: State) -> Iterator[Finding]:
    """Find Spark's jars."""
    from calve.lake import jars

    cache = state.settings.spark.jars_cache
    found = jars.cached(state.settings)
    yield Finding("jars", "ok", f"{len(found)} in {cache}" if found else f"downloaded on first use, into {cache}")


def check_store(state: State) -> Iterator[Finding]:
    """Connect to the state database."""
    url = state.settings.store.url
    with _database_errors("store"):
        yield Finding("store", "ok", _reached(url))


def check_set_aside(state: State) -> Iterator[Finding]:
    """Find instances that were set aside because workers died while running them."""
    from calve.engine import RunStatus, is_set_aside
    from calve.store import open_store

    if _absent_file(state.settings.store.url):
        return
    with open_store(state.settings.store.url) as store:
        failed = store.engine.instances(statuses=(RunStatus.FAILED,), limit=_NEWEST)
    found = [run for run in failed if is_set_aside(run)]
    for run in found[:_SHOWN]:
        name, again = f"{run.workflow_id} {run.instance_id}", f"calve restart {run.workflow_id} {run.instance_id}"
        yield Finding(
            "set aside", "warning", f"{name}: {run.message.partition('. ')[0]}.", f"calve status {name}; {again}"
        )
    if not found:
        yield Finding("set aside", "ok", "no instance")
    elif len(found) > _SHOWN:
        yield Finding("set aside", "warning", f"{len(found) - _SHOWN} more of the {_NEWEST} newest failed instances")


def check_catalogs(state: State) -> Iterator[Finding]:
    """Connect to every catalog, and check that Spark can use it."""
    from calve.lake import Lake, catalog_conf

    lake = Lake(state.settings)
    for name, definition in state.settings.catalogs.items():
        check = f"catalog {name}"
        try:
            catalog_conf(name, definition)
            file = _absent_file(definition.properties.get("uri", ""))
            if file is None:
                lake.catalog(name).tables((state.settings.capture.namespace,))
            yield Finding(check, "ok", f"created on first use, in {file}" if file else definition.kind)
        except CalveError as error:
            yield Finding(check, "wrong", error.message, error.remedy)
    lake.close()


def check_folders(state: State) -> Iterator[Finding]:
    """Check that every folder that calve writes to is writable."""
    from calve.folders import try_writing

    for what, folder, setting in _folders(state.settings):
        try:
            try_writing(what, folder, setting)
        except CalveError as error:
            yield Finding("folders", "wrong", error.message, error.remedy)
        else:
            yield Finding("folders", "ok", f"{what} ({folder})")


def check_isolation(state: State) -> Iterator[Finding]:
    """Report which boundaries around steps hold."""
    from calve.app import boundaries_of

    for boundary in boundaries_of(state.settings):
        status = "ok" if boundary.holds else "warning"
        verb = "holds" if boundary.holds else "does not hold"
        yield Finding(f"steps: {boundary.name}", status, f"{verb}: {boundary.detail}", boundary.remedy)
    yield _tables(state.settings)


def _tables(settings: "Settings") -> Finding:
    """Report whether namespaces may use only the tables granted to them."""
    from calve.app import has_closed_tables
    from calve.store import open_store

    with nullcontext() if _absent_file(settings.store.url) else open_store(settings.store.url) as store:
        is_closed = has_closed_tables(store, settings)
    if is_closed:
        return Finding("tables", "ok", "holds: a namespace may use only the tables that [access.tables] grants it")
    remedy = "Grant tables to namespaces in [access.tables], and set its policy to closed."
    return Finding("tables", "warning", "does not hold: every namespace may use every table", remedy)


def _folders(settings: "Settings") -> Iterator[tuple[str, Path, str]]:
    """Yield the files and folders that calve writes on this machine: a name, the path, and the setting of the path."""
    from calve.lake import jars, local_path

    yield "The state", settings.home, "home"
    yield "The folders of attempts", settings.home / "attempts", "home"
    if jars.cached(settings) is None:  # a full cache may be read-only
        yield "The cache of Spark's jars", settings.spark.jars_cache, "spark.jars_cache"
    if file := _sqlite_file(settings.store.url):
        yield "The state database", file, "store.url"
    for name, catalog in settings.catalogs.items():
        if file := _sqlite_file(catalog.properties.get("uri", "")):
            yield f"The catalog {name}", file, f"catalogs.{name}.uri"
        warehouse = catalog.properties.get("warehouse", "")
        if "/" in warehouse and (folder := local_path(warehouse)):
            yield f"The warehouse of {name}", folder, f"catalogs.{name}.warehouse"
    if settings.capture.location and (folder := local_path(settings.capture.location)):
        yield "The tables of captures", folder, "capture.location"
    if settings.lineage.file:
        yield "The lineage events", settings.lineage.file, "lineage.file"


CHECKS: dict[str, Callable[[State], Iterator[Finding]]] = {
    "python": check_python,
    "sqlite": check_sqlite,
    "settings": check_settings,
    "java": check_java,
    "jars": check_jars,
    "folders": check_folders,
    "store": check_store,
    "set_aside": check_set_aside,
    "catalogs": check_catalogs,
    "isolation": check_isolation,
}


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(CHECKS)), help="Check only this; repeatable.")
@click.option("--prove", metavar="CATALOG", help="Prove that this catalog does all that captures and deliveries need.")
@click.option(
    "--namespace", metavar="NAME", help="With --prove, the scratch namespace; by default a new one, calve_proof_…"
)
@click.option("--no-spark", is_flag=True, help="With --prove, start no Spark; what needs it is skipped.")
@click.option("--keep", is_flag=True, help="With --prove, keep the scratch namespace and all that is in it.")
@click.option(
    "--report",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --prove, also write the report into FILE, as Markdown.",
)
@json_option
@click.pass_obj
def doctor(
    state: State,
    only: tuple[str, ...],
    prove: str | None,
    namespace: str | None,
    report: Path | None,
    *,
    no_spark: bool,
    keep: bool,
) -> int:
    r"""Check this installation, or prove a catalog.

    \b
      calve doctor
      calve doctor --prove prod --report proof.md

    Without --prove, it checks this machine, whether or not CALVE_URL names a server: Python, SQLite, settings, Java,
    folders, databases, catalogs and isolation.

    With --prove, it does in a scratch namespace of the catalog what calve does with tables: it creates, appends,
    captures, reads, delivers, commits from two writers at once, leases, expires and drops. Then it removes everything
    that it made, also after Ctrl-C. It does not touch the state of the project. The report masks secrets and host
    names, so you can send it to us.

    The exit code is 1 if something is wrong, or a check failed.
    """
    if prove is not None:
        if only:
            raise click.UsageError("--only is for the checks of the installation, --prove for a catalog.")
        from calve.cli.commands.proof import prove_catalog

        return prove_catalog(state, prove, namespace, report, uses_spark=not no_spark, keeps=keep)
    if namespace is not None or report or no_spark or keep:
        raise click.UsageError("--namespace, --no-spark, --keep and --report need --prove.")
    findings = [finding for name in only or CHECKS for finding in _checked(state, name)]
    if state.json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print(findings)
    return int(any(finding.status == "wrong" for finding in findings))


def _checked(state: State, name: str) -> list[Finding]:
    try:
        return list(CHECKS[name](state))
    except CalveError as error:
        return [Finding(name, "wrong", error.message, error.remedy)]


def _print(findings: list[Finding]) -> None:
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        mark, colour = _MARKS[finding.status]
        click.echo(f"{click.style(mark, fg=colour)} {finding.check:<{width}}  {finding.detail}")
        if finding.remedy:
            click.echo(f"{' ' * (width + 4)}→ {finding.remedy}")


def _reached(url: str) -> str:
    """Return the address of a database that could be reached."""
    from sqlalchemy import create_engine, make_url, text

    shown = make_url(url).render_as_string(hide_password=True)
    if _absent_file(url):
        return f"created on first use, {shown}"
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
    finally:
        engine.dispose()
    return shown


def _absent_file(url: str) -> Path | None:
    """Return the file of an SQLite database that does not exist yet; opening it would create it."""
    file = _sqlite_file(url)
    return None if file is None or file.exists() else file


def _sqlite_file(url: str) -> Path | None:
    """Return the file of an SQLite database."""
    if not url.startswith("sqlite"):
        return None
    from sqlalchemy import make_url

    file = Path(make_url(url).database or ":memory:")
    return None if file.name == ":memory:" else file


@contextmanager
def _database_errors(check: str) -> Iterator[None]:
    """Turn errors of SQLAlchemy into ours."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        cause = getattr(error, "orig", None) or error
        raise CalveError(f"The {check} cannot be reached: {cause}", remedy="Check its address.") from error
