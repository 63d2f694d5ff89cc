"""Python steps: functions, files and texts in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.programs import workspace

from calve.engine import Outcome, State
from calve.steps.programs.python import Python

_MODULE = '''
import asyncio, collections, datetime, decimal, os, pathlib, sys

class Plain:
    """Nothing that JSON knows."""

class Number:
    def tolist(self):
        return 7

class Jobs:
    @staticmethod
    def run():
        return {"of": "a class"}

def echo(*args, **kwargs):
    print("argv", sys.argv, "args", args)
    return {"args": list(args), **kwargs}

def nothing():
    return None

def number():
    return 5

def rich():
    return {"day": datetime.date(2026, 1, 2), "set": {2, 1}, "path": pathlib.Path("a/b"), "d": decimal.Decimal("1.50"),
            "np": Number(), "ordered": collections.OrderedDict(a=1), "tuple": (1, 2)}

def plain():
    return {"x": Plain()}

async def later():
    await asyncio.sleep(0)
    return {"came": "later"}

def fail(message="no such day"):
    raise ValueError(message)

def leave(code):
    sys.exit(code)

def both():
    open(os.environ["CALVE_OUTPUT"], "w").write('{"a": 1, "b": 1}')
    return {"b": 2}

def needs():
    import gone_for_good
'''


def _run(context: FakeContext, **changes: Any) -> Outcome:
    return Python(workspace(context.home, **changes)).execute(context)


def _context(folder: Path, **config: Any) -> FakeContext:
    (folder / "our").mkdir(exist_ok=True)
    (folder / "our" / "jobs.py").write_text(_MODULE)
    (folder / "our" / "broken.py").write_text("import gone_for_good")
    return FakeContext(folder, {"python": config})


def test_a_function_of_the_project_is_called(tmp_path: Path) -> None:
    """With arguments as they are, and what it returns sets params."""
    context = _context(tmp_path, callable="our.jobs:echo", args=[1, "two", [3]], kwargs={"table": "db.t", "n": None})
    found = _run(context)
    assert found == Outcome(State.DONE, {"args": [1, "two", [3]], "table": "db.t", "n": None, "exit_code": 0})
    assert context.text == "argv ['our.jobs:echo'] args (1, 'two', [3])\n"


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        ("nothing", {}),
        ("number", {}),
        ("later", {"came": "later"}),
        ("Jobs.run", {"of": "a class"}),
        ("both", {"a": 1, "b": 2}),
        (
            "rich",
            {
                "day": "2026-01-02",
                "set": [1, 2],
                "path": "a/b",
                "d": "1.50",
                "np": 7,
                "ordered": {"a": 1},
                "tuple": [1, 2],
            },
        ),
    ],
)
def test_what_a_function_returns_sets_params(tmp_path: Path, name: str, outputs: dict[str, Any]) -> None:
    """A map does, whatever else it may be; anything else does not."""
    context = _context(tmp_path, callable=f"our.jobs:{name}")
    assert _run(context) == Outcome(State.DONE, {**outputs, "exit_code": 0})
    assert ("so it sets no params: int" in context.text) == (name == "number")


@pytest.mark.parametrize(
    ("config", "state", "message"),
    [
        ({"callable": "our.jobs:fail"}, State.USER_ERROR, "ValueError: no such day"),
        ({"callable": "our.jobs:plain"}, State.FATAL_ERROR, "The function returned a Plain, which no param can hold."),
        ({"callable": "our.jobs:echo", "kwargs": {"self": 1}}, State.DONE, ""),
        (
            {"callable": "our.jobs:nothing", "args": [1]},
            State.FATAL_ERROR,
            "our.jobs:nothing cannot be called like this: too many",
        ),
        ({"callable": "our.jobs:gone"}, State.FATAL_ERROR, "There is no gone in the module our.jobs."),
        ({"callable": "our.gone:run"}, State.FATAL_ERROR, "There is no module our.gone; searched in"),
        ({"callable": "our.broken:run"}, State.FATAL_ERROR, "ModuleNotFoundError: No module named 'gone_for_good'"),
        ({"callable": "our.jobs:needs"}, State.FATAL_ERROR, "ModuleNotFoundError: No module named 'gone_for_good'"),
        ({"callable": "our.jobs.fail"}, State.FATAL_ERROR, "must be written as package.module:function"),
        ({"callable": "our.jobs:leave", "args": [0]}, State.DONE, ""),
        ({"callable": "our.jobs:leave", "args": [7]}, State.USER_ERROR, "exit code 7"),
        ({"callable": "our.jobs:leave", "args": ["enough"]}, State.USER_ERROR, "exit code 1.\nenough"),
        ({"source": "1/0"}, State.USER_ERROR, "ZeroDivisionError: division by zero"),
        ({"source": "1 +"}, State.FATAL_ERROR, "SyntaxError: invalid syntax\n"),
        ({"source": "raise KeyboardInterrupt"}, State.USER_ERROR, "KeyboardInterrupt"),
        ({"file": "gone.py"}, State.FATAL_ERROR, "The Python file does not exist: gone.py"),
        ({"source": "1", "interpreter": "bin/gone"}, State.FATAL_ERROR, "The interpreter does not exist: bin/gone"),
        ({"source": "1", "interpreter": "python0"}, State.FATAL_ERROR, "python0: No such file"),
        ({"source": "1", "path": ["gone"]}, State.FATAL_ERROR, "A folder of path does not exist: gone"),
    ],
)
def test_the_end_says_how_the_step_went(tmp_path: Path, config: dict[str, Any], state: State, message: str) -> None:
    """The message names the error; what no retry can cure is fatal."""
    found = _run(_context(tmp_path, **config))
    assert (found.state, message in found.message) == (state, True), found


def test_the_traceback_begins_with_the_users_own_code(tmp_path: Path) -> None:
    """Nothing of how it was called is in the way."""
    context = _context(tmp_path, callable="our.jobs:fail")
    _run(context)
    lines = context.text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "our/jobs.py" in lines[1]
    assert "runner" not in context.text
    context = FakeContext(tmp_path, {"python": {"source": "def f():\n    1/0\nf()"}}, key="source")
    _run(context)
    assert "source.py" in context.text.splitlines()[1]
    assert "runpy" not in context.text


def test_a_file_is_run_as_a_script(tmp_path: Path) -> None:
    """It finds the modules beside it, and its arguments."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "beside.py").write_text("x = 'found'")
    script = "import beside, sys\nif __name__ == '__main__':\n    print(beside.x, sys.argv)"
    (tmp_path / "jobs" / "main.py").write_text(script)
    context = _context(tmp_path, file="jobs/main.py", args=["a", 1])
    assert _run(context).state is State.DONE
    assert context.text == f"found ['{tmp_path}/jobs/main.py', 'a', '1']\n"


def test_a_script_may_use_modules_that_steps_have_the_names_of(tmp_path: Path) -> None:
    """The folder of the runner is not among those that modules are looked for in."""
    source = "import http, sys\nprint(http.__file__)\nprint([p for p in sys.path if 'calve/steps' in p])"
    context = _context(tmp_path, source=source)
    assert _run(context).state is State.DONE
    assert "calve" not in context.text.splitlines()[0]
    assert context.text.splitlines()[1] == "[]"


def test_folders_of_path_come_first(tmp_path: Path) -> None:
    """Before the script's own, the project's and those of the environment."""
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    source = "import sys\nprint([p for p in sys.path if p.startswith(sys.argv[1])])"
    context = _context(tmp_path, source=source, path=["first", "second"], env={"PYTHONPATH": f"{tmp_path}/third"})
    context.params["python"]["args"] = [str(tmp_path)]
    _run(context)
    shown = [str(tmp_path / name) for name in ("first", "second")]
    script = str(context.folder / "processes" / "main" / "private")
    assert context.text == f"{[*shown, script, str(tmp_path), f'{tmp_path}/third']}\n"


def test_another_python_needs_no_calve(tmp_path: Path) -> None:
    """The Python of a virtual environment runs the step, with that environment's packages alone."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    source = "import sys\nprint(sys.prefix)\ntry:\n    import calve\nexcept ImportError:\n    print('no calve')"
    context = _context(tmp_path, source=source, interpreter="venv/bin/python")
    assert _run(context, environment={"PATH": os.defpath}).state is State.DONE
    assert context.text == f"{tmp_path}/venv\nno calve\n"


def test_a_bare_interpreter_is_looked_for_on_path(tmp_path: Path) -> None:
    """As a shell would."""
    folder = Path(sys.executable).parent
    context = _context(tmp_path, source="import sys; print(sys.executable)", interpreter="python3", cwd="our")
    assert _run(context, environment={"PATH": f"{folder}{os.pathsep}{os.defpath}"}).state is State.DONE
    assert context.text == f"{folder}/python3\n"


def test_no_argument_list_contains_a_secret(tmp_path: Path) -> None:
    """Arguments go in by a file that only the worker's user can read, and which is gone in the end."""
    source = "print(open('/proc/self/cmdline').read().replace(chr(0), ' '))\nimport sys\nprint(len(sys.argv[1]))"
    context = _context(tmp_path, source=source, args=["canary"], env={"TOKEN": "canary"})
    assert _run(context).state is State.DONE
    assert "canary" not in context.text
    assert context.text.endswith("6\n")
    assert not [path for path in context.folder.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]


def test_lines_are_not_held_back(tmp_path: Path) -> None:
    """Python writes to a pipe in large pieces unless it is told not to."""
    context = _context(tmp_path, source="import os; print(os.environ['PYTHONUNBUFFERED'])")
    _run(context)
    assert context.text == "1\n"


def test_what_ended_is_not_called_again(tmp_path: Path) -> None:
    """A worker that takes over finds what the function returned, or raised."""
    context = _context(tmp_path, callable="our.jobs:both")
    first = _run(context)
    assert _run(context.again()) == first
    failed = FakeContext(tmp_path, {"python": {"callable": "our.jobs:fail"}}, key="failed")
    first = _run(failed)
    assert _run(failed.again()) == first


def test_terminate_of_what_is_over_does_nothing(tmp_path: Path) -> None:
    """It may come at any time."""
    context = _context(tmp_path, callable="our.jobs:nothing")
    _run(context)
    Python(workspace(tmp_path)).terminate(context)


def test_a_report_that_was_half_written_is_skipped(tmp_path: Path) -> None:
    """Then the end of the program says what there is to say."""
    report = "os.environ['CALVE_OUTPUT'].replace('output', 'failure')"
    source = f"import os, sys\nprint('x', file=sys.stderr)\nopen({report}, 'w').write('{{')\nsys.exit(3)"
    found = _run(_context(tmp_path, source=source))
    assert found.message == "The program ended with exit code 3.\nx"
    assert found.outputs == {"exit_code": 3}
