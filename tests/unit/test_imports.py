"""Threads that import heavy libraries at the same time, each time in a fresh process."""

import ast
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import dedent
from threading import Thread

import pytest
from tests.scope import in_ci

from calve.imports import ImportTurns

SOURCE = Path(__file__).parents[2] / "src"
ROUNDS = in_ci(1, otherwise=20)
RUN = dedent(
    """
    import importlib, sys, threading
    from calve.imports import take_turns

    def load(name, errors):
        module, _, attribute = name.partition(":")
        try:
            loaded = importlib.import_module(module)
            getattr(loaded, attribute) if attribute else None
        except BaseException as error:
            errors.append(f"{name}: {error!r}")

    if sys.argv[1]:
        take_turns(float(sys.argv[1]))
    errors = []
    for names in sys.argv[2:]:
        threads = [threading.Thread(target=load, args=(name, errors)) for name in names.split()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(*errors, sep="\\n")
    sys.exit(bool(errors))
    """
)


def imported(*rounds: Iterable[str], patience: str = "30", folder: Path | None = None) -> list[str]:
    """Import the modules of each round in one thread each; return the errors. Without patience, there are no turns."""
    names = [" ".join(each) for each in rounds]
    command = [sys.executable, "-c", RUN, patience, *names]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode in {0, 1}, found.stderr
    return found.stdout.split("\n") if found.returncode else []


@pytest.fixture(name="packages")
def _packages(tmp_path: Path) -> list[list[str]]:
    """Make 20 packages with two modules that import each other, as those of PySpark do; each can be imported alone."""
    for number in range(20):
        package = tmp_path / f"package{number}"
        package.mkdir()
        package.joinpath("__init__.py").write_text(f"from package{number} import left\n")
        package.joinpath("left.py").write_text(
            f"import time\ntime.sleep(0.02)\nfrom package{number}.right import value\n"
        )
        package.joinpath("right.py").write_text(f"import package{number}.left\nvalue = 1\n")
    return [[f"package{number}", f"package{number}.right"] for number in range(20)]


def lazy_libraries() -> Iterator[str]:
    """Yield each module of a library that a function of calve imports."""
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom) and node.module:
                    yield node.module
                elif isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)


def lazy_exports() -> Iterator[str]:
    """Yield ``package:name`` for each module that a package of calve loads lazily."""
    for stub in SOURCE.rglob("__init__.pyi"):
        package = ".".join(stub.parent.relative_to(SOURCE).parts)
        for node in ast.walk(ast.parse(stub.read_text())):
            if isinstance(node, ast.ImportFrom):
                yield f"{package}:{node.names[0].name}"


def test_threads_that_import_at_once_fail_without_turns(packages: list[list[str]], tmp_path: Path) -> None:
    """Python fails the imports of most rounds, so the tests below test something."""
    assert len(imported(*packages, patience="", folder=tmp_path)) >= 10


def test_threads_that_import_at_once_take_turns(packages: list[list[str]], tmp_path: Path) -> None:
    """All of 20 rounds succeed."""
    assert imported(*packages, folder=tmp_path) == []


def test_whatever_calve_imports_lazily_can_be_imported_at_once() -> None:
    """Every library that a function imports, and every module behind a package: a thread each, all at once."""
    names = sorted({name for name in lazy_libraries() if not name.startswith("calve")} | set(lazy_exports()))
    assert len(names) > 150
    for _ in range(ROUNDS):
        assert imported(names) == []


def test_opening_a_lake_lets_threads_take_turns(tmp_path: Path) -> None:
    """Every command, server and connection opens it before it starts threads; before, imports are Python's own."""
    seen = dedent(
        """
        import _frozen_importlib as bootstrap
        from calve.app import open_lake
        from calve.settings import load
        print(bootstrap._ModuleLockManager.__name__)
        for _ in range(2):
            with open_lake(load()):
                print(*(each.__name__ for each in bootstrap._ModuleLockManager.__mro__))
        """
    )
    found = subprocess.run([sys.executable, "-c", seen], cwd=tmp_path, capture_output=True, text=True, check=False)
    after = "TurnAndModuleLock _ModuleLockManager object"
    assert found.stdout.splitlines() == ["_ModuleLockManager", after, after], found.stderr


def test_a_thread_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    """An import that waits for a thread that imports would block both: after a while, nobody waits anymore."""
    turns = ImportTurns(patience=0.05)
    held = turns.take()
    found: list[object] = []
    for _ in range(2):
        thread = Thread(target=lambda: found.append(turns.take()))
        thread.start()
        thread.join()
    held.release()
    assert found == [None, None]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_thread_waits_for_as_long_as_others_get_on() -> None:
    """A heavy library takes long on a busy machine, but imports one module after another."""
    turns = ImportTurns(patience=1.0)
    held = turns.take()
    found: list[object] = []
    thread = Thread(target=lambda: found.append(turns.take()))
    thread.start()
    for _ in range(6):
        time.sleep(0.25)
        turns.take().release()
    held.release()
    thread.join()
    assert found == [held]


def test_a_fork_has_the_turn_that_a_thread_of_its_parent_had() -> None:
    """The thread that imports does not exist in the fork, so its turn would never end."""
    turns = ImportTurns(patience=5)
    thread = Thread(target=turns.take)
    thread.start()
    thread.join()
    turns.renew()
    assert turns.take() is not None


def test_a_failed_import_ends_the_turn(packages: list[list[str]], tmp_path: Path) -> None:
    """Others import after it."""
    errors = imported(["missing", "missing.part"], *packages[:2], patience="5", folder=tmp_path)
    assert [line.partition(":")[0] for line in errors if line] == ["missing", "missing.part"]
