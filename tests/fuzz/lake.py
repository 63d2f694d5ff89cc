"""Asks calve about tables whose files were mutated, one after the other, and stops at nothing but a crash.

``python -m tests.fuzz.lake SEED COUNT [SECONDS]`` tries as many cases from a seed on; a case is its seed, so that one
that went wrong is tried again by its number and a count of 1. Every case has to end in an error of calve's, or in an
answer; within 2 seconds of processor time, or as many as are given, and 512 MiB in all. A count of 0 goes on until it
is stopped.
"""

import json
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.lake_mutations import Effect, kind_of, mutated
from tests.fuzz.lake_tables import QUESTIONS, Table, ask, tables

SECONDS = 2
MIB = 512
_HANGS = 30
"""After so many seconds a case is taken for one that hangs, however busy the machine."""


class Case:
    """One mutation of one file of one table."""

    def __init__(self, seed: int, made: list[Table]) -> None:
        random = Random(seed)
        self.table = random.choice(made)
        names = list(self.table.files)
        weights = [6 if name.endswith((".json", "deletes", ".puffin")) else 2 for name in names]
        self.file = random.choices(names, weights)[0]
        self.questions = [random.choice(QUESTIONS)]
        kind = kind_of(self.file, self.table.deletes)
        self.mutation, self.effect, self.content = mutated(random, kind, self.table.files[self.file])

    def __str__(self) -> str:
        return f"{self.mutation} in {self.table.folder.name}/{self.file} ({self.effect}), asked: {self.questions}"


def tried(case: Case, truth: dict[str, Any], seconds: float) -> tuple[str, Counter[str]]:
    """Ask about one case; return what is wrong, if anything, and what came of it."""
    path = case.table.folder / case.file
    path.write_bytes(case.content)
    _forget_peak()
    began = time.process_time()
    try:
        with _alarm():
            answers = ask(case.table, case.questions)
    except BaseException:  # noqa: BLE001 - whatever it is, it is what we look for
        return traceback.format_exc(), Counter()
    finally:
        took, peak = time.process_time() - began, _peak_mib()
        path.write_bytes(case.table.files[case.file])
    found: Counter[str] = Counter()
    for name, answer in answers.items():
        is_error = isinstance(answer, dict) and "error" in answer
        found[answer["error"] if is_error else "the same" if answer == truth[name] else "other"] += 1
        if (is_error and case.effect is Effect.HARMLESS) or (
            not is_error and case.effect is not Effect.VALUE and answer != truth[name]
        ):
            return f"{name}: {json.dumps(answer)[:2000]}\ninstead of {json.dumps(truth[name])[:2000]}", found
    if took > seconds or peak > MIB:
        return f"it took {took:.2f} s and {peak} MiB", found
    return "", found


@contextmanager
def _alarm() -> Iterator[None]:
    def wake(*_: object) -> None:
        raise TimeoutError("it hangs")

    signal.signal(signal.SIGALRM, wake)
    signal.alarm(_HANGS)
    try:
        yield
    finally:
        signal.alarm(0)


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_mib() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def run(first: int, cases: int, seconds: float = SECONDS) -> int:
    """Try cases; print each that goes wrong, and what came of all."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))  # a bomb is to kill the case, and not the machine
    failed = 0
    found: Counter[str] = Counter()
    slowest = largest = (0.0, 0)
    with tempfile.TemporaryDirectory(prefix="calve-fuzz-") as folder:
        made = tables(Path(folder))
        truths = {table.folder.name: ask(table) for table in made}
        for seed in range(first, first + cases) if cases else count(first):
            case = Case(seed, made)
            print(f"\r{seed}", end="", file=sys.stderr, flush=True)  # the last one is named if all dies
            began = time.process_time()
            problem, came = tried(case, truths[case.table.folder.name], seconds)
            slowest = max(slowest, (time.process_time() - began, seed))
            largest = max(largest, (float(_peak_mib()), seed))
            found += came
            if problem:
                failed += 1
                print(f"\nseed {seed}: {case}\n{problem}", flush=True)
    summary = ", ".join(f"{name} {number}" for name, number in found.most_common())
    print(
        f"\n{cases} cases from {first}: {failed} wrong; slowest {slowest[0]:.2f} s (seed {slowest[1]}), "
        f"largest {largest[0]:.0f} MiB (seed {largest[1]}); {summary}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), int(sys.argv[2]), *map(float, sys.argv[3:4])))
