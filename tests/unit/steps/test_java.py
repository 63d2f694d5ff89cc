"""Java steps: which Java is run, with what arguments, and what its failures tell."""

import os
import shutil
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.programs import SLOW, number_in, workspace

from calve.engine import Outcome, State
from calve.steps.programs.java import Java

_TOOL = "sun.security.tools.keytool.Main"
"""A program that every Java has."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a Java that prints its arguments, one on a line."""
    return _java(tmp_path / "java", 'printf "%s\\n" "$@"')


def _java(home: Path, script: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return home


def _jar(path: Path, manifest: str | None = None) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some/file", "")
        if manifest is not None:
            archive.writestr("META-INF/MANIFEST.MF", manifest)
    return path


def _context(folder: Path, **config: Any) -> FakeContext:
    return FakeContext(folder, {"java": config})


def _run(context: FakeContext, **changes: Any) -> Outcome:
    return Java(workspace(context.home, **changes)).execute(context)


def test_a_jar_is_run(tmp_path: Path, home: Path) -> None:
    """With options of the JVM before, and arguments after it."""
    _jar(tmp_path / "a.jar")
    context = _context(tmp_path, jar="a.jar", args=["x y", 1, True], jvm_options=["-Xmx1g", "-Da=b"])
    assert _run(context, java_home=home) == Outcome(State.DONE, {"exit_code": 0})
    assert context.text.splitlines() == ["-Xmx1g", "-Da=b", "-jar", str(tmp_path / "a.jar"), "x y", "1", "true"]


def test_a_class_is_run(tmp_path: Path, home: Path) -> None:
    """The class path is made of jars, folders, and all jars of a folder, all found in the project."""
    (tmp_path / "lib").mkdir()
    _jar(tmp_path / "lib" / "b.jar")
    context = _context(tmp_path, main_class="our.Main", classpath=["lib/b.jar", "lib", "lib/*"], args=["go"])
    _run(context, java_home=home)
    lib = tmp_path / "lib"
    assert context.text.splitlines() == ["-cp", f"{lib}/b.jar:{lib}:{lib}/*", "our.Main", "go"]


def test_a_class_without_a_class_path_is_left_to_java(tmp_path: Path, home: Path) -> None:
    """It looks where CLASSPATH says, else where it runs."""
    context = _context(tmp_path, main_class="our.Main")
    _run(context, java_home=home)
    assert context.text.splitlines() == ["our.Main"]


def test_a_class_of_a_jar_may_be_named(tmp_path: Path, home: Path) -> None:
    """Then the manifest has no say."""
    jar = _jar(tmp_path / "a.jar")
    context = _context(tmp_path, jar="a.jar", main_class="our.Other")
    _run(context, java_home=home)
    assert context.text.splitlines() == ["-cp", str(jar), "our.Other"]


def test_a_jar_may_have_a_class_path(tmp_path: Path, home: Path) -> None:
    """Java ignores one beside -jar, so the class is taken from the manifest, also out of a line that goes on."""
    jar = _jar(tmp_path / "a.jar", "Manifest-Version: 1.0\r\nMain-Class: our.pack\r\n age.Main\r\n")
    context = _context(tmp_path, jar="a.jar", classpath=["."])
    _run(context, java_home=home)
    assert context.text.splitlines() == ["-cp", f"{jar}:{tmp_path}", "our.package.Main"]


@pytest.mark.parametrize(
    ("manifest", "told"), [(None, "is not a jar with a manifest"), ("Manifest-Version: 1.0\n", "names no main class")]
)
def test_a_jar_that_names_no_class_is_reported(tmp_path: Path, home: Path, manifest: str | None, told: str) -> None:
    """A retry would not help."""
    _jar(tmp_path / "a.jar", manifest)
    found = _run(_context(tmp_path, jar="a.jar", classpath=["."]), java_home=home)
    assert found.state is State.FATAL_ERROR
    assert told in found.message


def test_the_java_of_the_step_goes_before_that_of_the_settings(tmp_path: Path, home: Path) -> None:
    """And a relative one is in the project."""
    _java(tmp_path / "other", "echo other; pwd; echo $MODE")
    context = _context(tmp_path, main_class="M", java_home="other", env={"MODE": 1}, cwd=".")
    _run(context, java_home=home)
    assert context.text.splitlines() == ["other", str(tmp_path), "1"]


def test_else_the_java_on_path_is_taken(tmp_path: Path, home: Path) -> None:
    """That of the environment that the step runs in."""
    path = f"{home / 'bin'}{os.pathsep}{os.defpath}"
    context = _context(tmp_path, main_class="M", env={"PATH": path})
    assert _run(context).state is State.DONE
    assert context.text.splitlines() == ["M"]


@pytest.mark.parametrize(
    ("config", "changes", "told"),
    [
        ({"java_home": "gone"}, {}, "The java of java_home does not exist: gone/bin/java"),
        ({}, {"java_home": Path("/gone")}, "The java of the settings does not exist"),
        ({"env": {"PATH": "/nowhere"}}, {}, "Java was not found: neither java_home nor the settings name one"),
        ({"classpath": ["gone.jar"], "java_home": "java"}, {}, "An entry of classpath does not exist: gone.jar"),
        ({"jar": "gone.jar", "java_home": "java"}, {}, "The jar does not exist: gone.jar"),
    ],
)
@pytest.mark.usefixtures("home")
def test_what_is_missing_is_reported(
    tmp_path: Path, config: dict[str, Any], changes: dict[str, Any], told: str
) -> None:
    """With where it was looked for."""
    found = _run(_context(tmp_path, main_class="M", **config), **changes)
    assert found.state is State.FATAL_ERROR
    assert told in found.message


def test_the_exception_is_reported_without_its_frames(tmp_path: Path) -> None:
    """The message names the exceptions; the frames between them are in the log."""
    lines = ['Exception in thread "main" a.Failed: no', *["  at x(y)"] * 9, "Caused by: b.Lost: gone", "  at z(y)"]
    home = _java(tmp_path / "java", "\n".join(f"echo '{line}' >&2" for line in lines) + "\nexit 1")
    context = _context(tmp_path, main_class="M")
    found = _run(context, java_home=home)
    told = 'The program ended with exit code 1.\nException in thread "main" a.Failed: no\nCaused by: b.Lost: gone'
    assert found == Outcome(State.USER_ERROR, {"exit_code": 1}, message=told)
    assert context.text.splitlines() == lines


def test_terminate_ends_it(tmp_path: Path) -> None:
    """Nothing of it is left when terminate comes back."""
    home = _java(tmp_path / "java", f"echo $$ > main; {SLOW}")
    context = _context(tmp_path, main_class="M")
    found: list[Outcome] = []
    thread = threading.Thread(target=lambda: found.append(_run(context, java_home=home)))
    thread.start()
    number_in(context.folder / "work" / "main")
    Java(workspace(tmp_path)).terminate(context)
    thread.join()
    assert found[0].state is State.STOPPED


@pytest.mark.spark
def test_a_real_java_runs_a_jar_and_a_class(tmp_path: Path) -> None:
    """What is started works with Java itself."""
    assert shutil.which("java")
    _jar(tmp_path / "a.jar", f"Manifest-Version: 1.0\nMain-Class: {_TOOL}\n")
    configs: list[dict[str, Any]] = [{"jar": "a.jar"}, {"jar": "a.jar", "classpath": ["."]}, {"main_class": _TOOL}]
    for number, config in enumerate(configs):
        given = {**config, "args": ["-help"], "jvm_options": ["-Xmx64m"]}
        context = FakeContext(tmp_path, {"java": given}, key=f"{number}")
        assert _run(context).state is State.DONE
        assert "keytool" in context.text
    found = _run(_context(tmp_path, main_class="no.such.Class"))
    assert found.state is State.FATAL_ERROR
    assert "Error: Could not find or load main class no.such.Class" in found.message
