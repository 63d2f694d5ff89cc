"""Runs applications and jars through spark-submit, on the lake, and adds up what they read and wrote.

Settings stand in a file of properties that only the worker's user can read: others can read a command line, on which
``args`` are. Where the user has event logs written elsewhere, what is read and written is not known here. In deploy
mode ``cluster`` the driver runs elsewhere: what it reads and writes is not known here, and an
interruption ends only the program that waits for it.
"""

import re
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from calve.engine.ports import Outcome, State, StepContext
from calve.environment import PREFIX
from calve.errors import CalveError
from calve.lake import jars, java
from calve.lake.spark import make_catalogs
from calve.lake.spark_conf import context_conf, launch_conf, session_conf
from calve.settings import Settings
from calve.steps.configs import text
from calve.steps.endings import last_lines, outcome
from calve.steps.failures import fatal, of_error
from calve.steps.places import Place
from calve.steps.processes import MAIN, Ending, How, Program, run
from calve.steps.spark import conf
from calve.steps.spark.events import EventLog, Usage
from calve.steps.spark.progress import Progress
from calve.steps.spark.servers import environment, spark_home
from calve.steps.surroundings import Surroundings

_OUT_OF_MEMORY = 52
_LOOK_SECONDS = 1.0
_WAITING = {
    "spark.standalone.submit.waitAppCompletion": "true",
    "spark.yarn.submit.waitAppCompletion": "true",
    "spark.kubernetes.submission.waitAppCompletion": "true",
}
"""The step is over when the application is, whatever the user says: what comes after it builds on that."""
_TELLING = re.compile(r"[\w.$]*(?:Error|Exception|Exit)\b.*|Error: .*|\[[A-Z_.]+\] .*|Caused by: .*")
_FRAME = re.compile(r"\s+at |\s+\.\.\. \d+ more")


class Submission:
    """One application or jar of a step."""

    def __init__(self, settings: Settings, surroundings: Surroundings, config: Mapping[str, Any]) -> None:
        master = config.get("master")
        if config.get("remote") or (settings.spark.remote and not master):
            raise fatal(
                "An application or jar needs a master: a Spark Connect server (remote) cannot run it.",
                remedy="Give spark.master, or write the step as a function.",
            )
        self._settings = conf.with_master(settings, str(master)) if master else settings
        self._surroundings = surroundings
        self._config = config

    def run(self, context: StepContext, branch: str) -> tuple[Outcome, "EventLog | None"]:
        """Run it to its end; return the outcome, and its event log if there is one."""
        events = None if self._is_elsewhere or self._has_own_events else _fresh(context.folder / "events")
        log = None if events is None else EventLog(events, is_application=True)
        with nullcontext() if log is None else _watched(context, log):
            ending = run(
                context,
                self._surroundings,
                lambda place: self._program(context, place, branch, events),
                name=branch or MAIN,  # what ended on another branch has written nothing to this one
            )
        # Spark lets a Python program print its errors to standard output.
        both = replace(ending, tail=(*ending.printed, *ending.tail))
        found = outcome(both, context, told_by=telling_lines, is_telling=True)
        if _is_out_of_memory(ending):
            found = Outcome(State.PLATFORM_ERROR, message=f"Spark ran out of memory.\n{found.message}")
        outputs = {name: value for name, value in found.outputs.items() if name != "exit_code"}
        return Outcome(found.state, outputs, found.artifacts, found.message), log

    @property
    def _is_elsewhere(self) -> bool:
        return bool(self._config.get("deploy_mode") == "cluster")

    @property
    def _has_own_events(self) -> bool:
        """Whether the user has Spark write its event log somewhere else, for a history server, say."""
        given = {**self._settings.spark.conf, **self._config.get("conf", {})}
        return any(name.startswith("spark.eventLog.") for name in given)

    def _program(self, context: StepContext, place: Place, branch: str, events: Path | None) -> Program:
        settings = self._settings
        try:
            found = java.find(settings.spark.java_home)
            files = jars.provide(settings, found)
            make_catalogs(settings)
        except CalveError as error:
            raise of_error(error) from error
        given = place.write("spark.properties", conf.properties(self._conf(context, files, branch, events)))
        argv = (str(spark_home() / "bin" / "spark-submit"), "--properties-file", str(given), *self._target())
        own = self._surroundings.environment_for(context, {})
        titles = {name: value for name, value in own.items() if name.startswith(PREFIX)}
        return Program(argv, {**titles, **environment(own, self._surroundings.python, found.home)})

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
        """Return a file of the project, or an address, which Spark fetches itself."""
        return path if "://" in path else str(self._surroundings.locate(path, what))


@contextmanager
def _watched(context: StepContext, events: EventLog) -> Iterator[None]:
    """Log how far an application has come, as its event log tells."""
    over = threading.Event()
    progress = Progress(context.log, events.usage)

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            with suppress(OSError):  # a file that Spark has just left
                progress.tell(events.stages())

    watcher = threading.Thread(target=watch, name="calve-spark-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def used(events: EventLog | None) -> Usage | None:
    """Return what an application has read and written, if it wrote that down."""
    return None if events is None or not events.has_begun else events.usage()


def telling_lines(lines: Sequence[str]) -> str:
    """Return the lines that name errors, out of the frames between them."""
    shown = [line for line in lines if not _FRAME.match(line)]
    return last_lines([line for line in shown if _TELLING.match(line.strip())]) or last_lines(shown)


def _is_out_of_memory(ending: Ending) -> bool:
    return ending.how is How.EXITED and ending.code == _OUT_OF_MEMORY


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
