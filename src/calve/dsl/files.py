"""The workflows that a Python file describes."""

import runpy
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calve.dsl.location import Location
from calve.dsl.workflow import COLLECTED, Workflow
from calve.errors import CalveError, DefinitionInvalid, RequestInvalid

MODULE = "__calve__"
"""The ``__name__`` of a file that is read for its workflows."""


def workflows_in(path: Path | str) -> list[Workflow]:
    """Return the workflows that a Python file describes, in the order of their description.

    The file runs in its own namespace, where ``__name__`` is ``__calve__``. It can import the modules beside it,
    which are unloaded afterwards.

    Args:
        path: The file.

    Raises:
        RequestInvalid: The file does not exist.
        DefinitionInvalid: The file ended with an error; the message names the line.
    """
    file = Path(path).absolute()
    if not file.is_file():
        raise RequestInvalid(f"{path} is not a file")
    collected: list[Workflow] = []
    token = COLLECTED.set(collected)
    try:
        with _modules_of(file.parent):
            runpy.run_path(str(file), run_name=MODULE)
    except CalveError:
        raise  # its message names the line
    except (Exception, SystemExit) as error:
        location = _location(error, file)
        what = f"{error.__class__.__name__}: {error}".rstrip(": ")
        raise DefinitionInvalid(f"{location}: {what}", file=location.file, line=location.line) from error
    finally:
        COLLECTED.reset(token)
    return collected


@contextmanager
def _modules_of(folder: Path) -> Iterator[None]:
    """Import modules from a folder, and unload them afterwards: another folder may have modules of the same names."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin is not None and Path(origin).is_relative_to(folder):
                del sys.modules[name]


def _location(error: BaseException, file: Path) -> Location:
    """Return the last line of the user's own code that an error came through."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return Location(error.filename, error.lineno or 1)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(file.parent)]
    return Location(own[-1].filename, own[-1].lineno or 1) if own else Location(str(file), 1)
