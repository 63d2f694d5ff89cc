"""Runs applications and jars with spark-submit, and adds up their usage from Spark's event log.

The configuration is passed in a properties file that only the program's user can read; anyone can read a command line.
What an application reads and writes is unknown if the user sends event logs elsewhere, or in deploy mode ``cluster``,
where an interruption ends only spark-submit.
"""

import re
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from calve.engine import Outcome, State, StepContext
from calve.environment import PREFIX
from calve.errors import CalveError
from calve.lake import context_conf, launch_conf, prepare_spark, session_conf
from calve.settings import Settings
from calve.steps.config import text
from calve.steps.failures import failure_of, fatal
from calve.steps.processes import (
    MAIN,
    CompletedProcess,
    EndReason,
    ProcessFolder,
    Program,
    Workspace,
    last_lines,
    outcome_of,
    run_program,
    without_exit_code,
)
from calve.steps.spark import conf
from calve.steps.spark.connect_server import environment, spark_home
from calve.steps.spark.event_log import EventLog
from calve.steps.spark.progress import Progress

_OUT_OF_MEMORY = 52
_LOOK_SECONDS = 1.0
_WAITING = {
    "spark.standalone.submit.waitAppCompletion": "true",
    "spark.yarn.submit.waitAppCompletion": "true",
    "spark.kubernetes.submission.waitAppCompletion": "true",
}
"""A step always waits for its application: the steps after it depend on it."""
_TELLING = re.compile(r"[\w.$]*(?:Error|Exception|Exit)\b.*|Error: .*|\[[A-Z_.]+\] .*|Caused by: .*")
_FRAME = re.compile(r"\s+at |\s+\.\.\. \d+ more")


class Submission:
    """The application or jar of a step."""

    def __init__(self, settings: Settings, workspace: Workspace, config: Mapping[str, Any]) -> None:
        master = config.get("master")
        if config.get("remote") or (settings.spark.remote and not master):
            raise fatal(
                "An application or jar needs a master: a Spark Connect server (remote) cannot run it.",
                remedy="Give spark.master, or write the step as a function.",
            )
        self._settings = conf.with_master(settings, str(master)) if master else settings
        self._workspace = workspace
        self._config = config

    def run(self, context: StepContext, branch: str) -> tuple[Outcome, "EventLog | None"]:
        """Run it to its end; return the outcome, and the event log if there is one."""
        events = None if self._is_elsewhere or self._has_own_events else _fresh(context.folder / "events")
        log = None if events is None else EventLog(events, is_application=True)
        with nullcontext() if log is None else _watched(context, log):
            completed = run_program(
                context,
                self._workspace,
                lambda folder: self._program(context, folder, branch, events),
                name=branch or MAIN,  # a process that ended on another branch wrote nothing to this one
            )
        # Spark prints the errors of a Python program to standard output.
        both = replace(completed, tail=(*completed.stdout_tail, *completed.tail))
        found = without_exit_code(outcome_of(both, context, pick=error_lines, finds_evidence=True))
        if _is_out_of_memory(completed):
            found = Outcome(State.PLATFORM_ERROR, message=f"Spark ran out of memory.\n{found.message}")
        return found, log

    @property
    def _is_elsewhere(self) -> bool:
        return bool(self._config.get("deploy_mode") == "cluster")

    @property
    def _has_own_events(self) -> bool:
        """Whether the user configures the event log, for a history server for example."""
        given = {**self._settings.spark.conf, **self._config.get("conf", {})}
        return any(name.startswith("spark.eventLog.") for name in given)

    def _program(self, context: StepContext, folder: ProcessFolder, branch: str, events: Path | None) -> Program:
        settings = self._settings
        try:
            java, files = prepare_spark(settings)
        except CalveError as error:
            raise failure_of(error) from error
        given = folder.write("spark.properties", conf.properties(self._conf(context, files, branch, events)))
        argv = (str(spark_home() / "bin" / "spark-submit"), "--properties-file", str(given), *self._target())
        own = self._workspace.environment_for(context, {})
        titles = {name: value for name, value in own.items() if name.startswith(PREFIX)}
        return Program(argv, {**titles, **environment(own, self._workspace.python, java.home)})

    def _conf(self, context: StepContext, files: Sequence[Path], branch: str, events: Path | None) -> dict[str, str]:
        settings, config = self._settings, self._config
        merged = {
            **session_conf(settings),
            **context_conf(settings),
            **launch_conf(settings, files),
            **({} if events is None else conf.event_conf(events)),
            **conf.step_conf(config, context.key, branch),
            "spark.app.name": context.title,
            "spark.submit.deployMode": str(config.get("deploy_mode", "client")),
            **(_WAITING if self._is_elsewhere else {}),
        }
        added = {
            "spark.jars": self._paths("jars"),
            "spark.jars.packages": [text(item) for item in config.get("packages", ())],
            "spark.submit.pyFiles": self._paths("py_files"),
            "spark.files": self._paths("files"),
        }
        for name, items in added.items():
            merged[name] = ",".join(filter(None, [merged.get(name, ""), *items]))
        if config.get("namespace"):
            catalog = config.get("catalog") or settings.default_catalog
            merged[f"spark.sql.catalog.{catalog}.default-namespace"] = str(config["namespace"])
        return {name: value for name, value in merged.items() if value}

    def _paths(self, name: str) -> list[str]:
        return [self._located(text(item), f"A file of {name}") for item in self._config.get(name, ())]

    def _target(self) -> tuple[str, ...]:
        config = self._config
        main = ("--class", str(config["main_class"])) if "main_class" in config else ()
        given = str(config["application"] if "application" in config else config["jar"])
        arguments = [text(item) for item in config.get("args", ())]
        return (*main, self._located(given, "The application"), *arguments)

    def _located(self, path: str, what: str) -> str:
        """Return a file of the project, or a URL, which Spark fetches itself."""
        return path if "://" in path else str(self._workspace.locate(path, what))


@contextmanager
def _watched(context: StepContext, events: EventLog) -> Iterator[None]:
    """Log the progress of an application from its event log."""
    over = threading.Event()
    progress = Progress(context.log, events.usage)

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            with suppress(OSError):  # a file that Spark has just rotated
                progress.tell(events.stages())

    watcher = threading.Thread(target=watch, name="calve-spark-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def error_lines(lines: Sequence[str]) -> str:
    """Return the lines that name errors, without stack frames."""
    shown = [line for line in lines if not _FRAME.match(line)]
    return last_lines([line for line in shown if _TELLING.match(line.strip())]) or last_lines(shown)


def _is_out_of_memory(completed: CompletedProcess) -> bool:
    return completed.reason is EndReason.EXITED and completed.code == _OUT_OF_MEMORY


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
