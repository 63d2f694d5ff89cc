"""Carries out Java steps: a jar or a class."""

import os
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calve.definition.step_types.programs import JAVA
from calve.engine.ports import Outcome, StepContext
from calve.steps.configs import fields, text
from calve.steps.endings import last_lines, outcome
from calve.steps.failures import fatal, settled
from calve.steps.processes import Program, end, run
from calve.steps.surroundings import Surroundings

_TELLING = re.compile(r"Exception in thread |Caused by: |Error: ")
_MANIFEST = "META-INF/MANIFEST.MF"
_MANIFEST_LIMIT = 1_048_576


class Java:
    """Runs a Java program."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def execute(self, context: StepContext) -> Outcome:
        """Run it to its end."""
        return settled(self._execute, context)

    def terminate(self, context: StepContext) -> None:
        """End it and all that it started."""
        end(context, self._surroundings)

    def _execute(self, context: StepContext) -> Outcome:
        config = fields(context, JAVA)
        ending = run(context, self._surroundings, lambda _: self._program(context, config))
        return outcome(ending, context, told_by=_telling_lines, is_telling=True)

    def _program(self, context: StepContext, config: Mapping[str, Any]) -> Program:
        environment = self._surroundings.environment_for(context, config.get("env", {}))
        cwd = self._surroundings.locate(config["cwd"], "The folder to run in") if "cwd" in config else None
        java = self._java(config, environment)
        options = [text(item) for item in config.get("jvm_options", ())]
        arguments = [text(item) for item in config.get("args", ())]
        return Program((java, *options, *self._target(config), *arguments), environment, cwd)

    def _java(self, config: Mapping[str, Any], environment: Mapping[str, str]) -> str:
        """Return the java to run: that of the step, of the settings, or the one on PATH."""
        if "java_home" in config:
            return str(self._surroundings.locate(f"{config['java_home']}/bin/java", "The java of java_home"))
        home = self._surroundings.java_home
        if home is not None:
            return str(self._surroundings.locate(str(home / "bin" / "java"), "The java of the settings"))
        found = shutil.which("java", path=environment.get("PATH", os.defpath))
        if found is None:
            raise fatal("There is no Java: neither java_home nor the settings name one, and PATH has none.")
        return found

    def _target(self, config: Mapping[str, Any]) -> tuple[str, ...]:
        jar = self._surroundings.locate(config["jar"], "The jar") if "jar" in config else None
        classpath = [self._entry(text(item)) for item in config.get("classpath", ())]
        main_class = config.get("main_class")
        if jar is not None and main_class is None and not classpath:
            return ("-jar", str(jar))
        if main_class is None and jar is not None:
            main_class = _main_class(jar)  # java ignores the class path beside -jar
        entries = [str(jar), *classpath] if jar is not None else classpath
        return (*(["-cp", os.pathsep.join(entries)] if entries else []), str(main_class))

    def _entry(self, item: str) -> str:
        """Return a jar, a folder, or all jars of a folder, written with a star."""
        folder, star, rest = item.partition("*")
        if star and not rest:
            return f"{self._surroundings.locate(folder or '.', 'A folder of classpath')}{os.sep}*"
        return str(self._surroundings.locate(item, "An entry of classpath"))


def _main_class(jar: Path) -> str:
    """Return the class that a jar's manifest names."""
    try:
        with zipfile.ZipFile(jar) as archive, archive.open(_MANIFEST) as file:
            manifest = file.read(_MANIFEST_LIMIT).decode("utf-8", "replace")
    except (KeyError, OSError, zipfile.BadZipFile) as error:
        raise fatal(f"{jar} is no jar with a manifest: {error}") from error
    found = re.search(r"^Main-Class:\s*(\S+)", re.sub(r"\r?\n ", "", manifest), re.MULTILINE)
    if found is None:
        raise fatal(f"The manifest of {jar} names no class to run; give main_class.")
    return found[1]


def _telling_lines(lines: Sequence[str]) -> str:
    """Return the lines that name exceptions, out of the frames between them."""
    return last_lines([line for line in lines if _TELLING.match(line.strip())]) or last_lines(lines)
