"""Trace a command through calve: the files that it passes, and the files that call each other back.

    python scripts/trace_way.py run flow.yaml
    python scripts/trace_way.py --hops calve.engine run flow.yaml

Prints the number of files and functions, the pairs of files that call each other, and with ``--hops PREFIX`` every call
between modules below a prefix, in the order of their first call. A function inside another one, such as the closure
that a transaction is given, counts as part of the other one.
"""

import inspect
import sys
import threading
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SOURCE = str(Path(__file__).resolve().parents[1] / "src")


class Trace:
    """Notes every call between functions of calve, in all threads."""

    def __init__(self) -> None:
        self.calls: dict[tuple[CodeType, CodeType], None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call and its nearest caller in calve."""
        if event != "call" or not _is_ours(frame.f_code) or "<locals>" in frame.f_code.co_qualname:
            return
        caller = frame.f_back
        while caller is not None and not _is_ours(caller.f_code):
            caller = caller.f_back
        if caller is not None:
            self.calls.setdefault((caller.f_code, frame.f_code))

    def report(self, prefix: str | None) -> Iterator[str]:
        """Yield lines about what was seen."""
        codes = {code for pair in self.calls for code in pair}
        pairs = {(_module(caller), _module(callee)) for caller, callee in self.calls}
        files = sorted({_module(code) for code in codes})
        mutual = [(one, other) for one, other in combinations(files, 2) if {(one, other), (other, one)} <= pairs]
        yield (f"{len(files)} files, {len(codes)} functions, {len(mutual)} mutual pairs of files")
        for one, other in mutual:
            yield (f"  {one} <-> {other}")
            for caller, callee in self.calls:
                if {_module(caller), _module(callee)} == {one, other}:
                    yield (f"      {_name(caller)} -> {_name(callee)}")
        if prefix is not None:
            for caller, callee in self.calls:
                if _module(caller) != _module(callee) and _module(callee).startswith(prefix):
                    yield (f"{_name(caller)} -> {_name(callee)}")


def _is_ours(code: CodeType) -> bool:
    """Tell whether code is a function of calve: bodies of modules and classes, which imports execute, are not."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and code.co_filename.startswith(SOURCE)


def _module(code: CodeType) -> str:
    return ".".join(Path(code.co_filename).relative_to(SOURCE).with_suffix("").parts)


def _name(code: CodeType) -> str:
    return f"{_module(code)}.{code.co_qualname.partition('.<locals>')[0]}"


def main(arguments: list[str]) -> None:
    """Run a command of calve, and report on its way."""
    prefix = None
    if arguments[:1] == ["--hops"]:
        prefix, arguments = arguments[1], arguments[2:]
    from calve.cli import main as command

    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    sys.argv = ["calve", *arguments]
    try:
        command()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        sys.stdout.writelines(f"{line}\n" for line in trace.report(prefix))


if __name__ == "__main__":
    main(sys.argv[1:])
