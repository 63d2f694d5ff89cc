"""The Java step: runs a jar or a class."""

import os
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calve.definition.step_types import JAVA
from calve.engine import Outcome, StepContext
from calve.steps.config import fields, text
from calve.steps.failures import fatal
from calve.steps.processes import Program, last_lines, outcome_of, run_program
from calve.steps.programs.program_step import ProgramStep

_EXCEPTION = re.compile(r"Exception in thread |Caused by: |Error: ")
_MANIFEST = "META-INF/MANIFEST.MF"
_MANIFEST_LIMIT = 1_048_576


class Java(ProgramStep):
    """Runs a Java program."""

    def run(self, context: StepContext) -> Outcome:
        """Run it to its end."""
        config = fields(context, JAVA)
        completed = run_program(context, self._workspace, lambda _: self._program(context, config))
        return outcome_of(completed, context, pick=_exception_lines, finds_evidence=True)

    def _program(self, context: StepContext, config: Mapping[str, Any]) -> Program:
        environment = self._environment(config, context)
        java = self._java(config, environment)
        options = [text(item) for item in config.get("jvm_options", ())]
        arguments = [text(item) for item in config.get("args", ())]
        return Program((java, *options, *self._target(config), *arguments), environment, self._cwd(config))

    def _java(self, config: Mapping[str, Any], environment: Mapping[str, str]) -> str:
        """Return the java to run: the step's, the one in the settings, or the one on PATH."""
        if "java_home" in config:
            return str(self._workspace.locate(f"{config['java_home']}/bin/java", "The java of java_home"))
        home = self._workspace.java_home
        if home is not None:
            return str(self._workspace.locate(str(home / "bin" / "java"), "The java of the settings"))
        found = shutil.which("java", path=environment.get("PATH", os.defpath))
        if found is None:
            raise fatal("Java was not found: neither java_home nor the settings name one, and PATH has none.")
        return found

    def _target(self, config: Mapping[str, Any]) -> tuple[str, ...]:
        jar = self._workspace.locate(config["jar"], "The jar") if "jar" in config else None
        classpath = [self._entry(text(item)) for item in config.get("classpath", ())]
        main_class = config.get("main_class")
        if jar is not None and main_class is None and not classpath:
            return ("-jar", str(jar))
        if main_class is None and jar is not None:
            main_class = _main_class(jar)  # java ignores the class path if -jar is given
        entries = [str(jar), *classpath] if jar is not None else classpath
        return (*(["-cp", os.pathsep.join(entries)] if entries else []), str(main_class))

    def _entry(self, item: str) -> str:
        """Return a jar, a folder, or, with a star at the end, all jars of a folder."""
        folder, star, rest = item.partition("*")
        if star and not rest:
            return f"{self._workspace.locate(folder or '.', 'A folder of classpath')}{os.sep}*"
        return str(self._workspace.locate(item, "An entry of classpath"))


def _main_class(jar: Path) -> str:
    """Return the class that a jar's manifest names."""
    try:
        with zipfile.ZipFile(jar) as archive, archive.open(_MANIFEST) as file:
            manifest = file.read(_MANIFEST_LIMIT).decode("utf-8", "replace")
    except (KeyError, OSError, zipfile.BadZipFile) as error:
        raise fatal(f"{jar} is not a jar with a manifest: {error}") from error
    found = re.search(r"^Main-Class:\s*(\S+)", re.sub(r"\r?\n ", "", manifest), re.MULTILINE)
    if found is None:
        raise fatal(f"The manifest of {jar} names no main class; set main_class.")
    return found[1]


def _exception_lines(lines: Sequence[str]) -> str:
    """Return the lines that name exceptions, without stack frames."""
    return last_lines([line for line in lines if _EXCEPTION.match(line.strip())]) or last_lines(lines)
