"""The outcome of a step whose program has ended."""

import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import assert_never

from calve.engine import Outcome, State, StepContext
from calve.steps.processes.outputs import read_outputs, with_outputs
from calve.steps.processes.process import CompletedProcess, EndReason
from calve.steps.retries import Evidence, Kind, evidence_in, state_of

_KILLED = frozenset({signal.SIGKILL, signal.SIGTERM})
_HINTS = {
    126: " A program was found, but could not be run: is it executable?",
    127: " A program was not found: is it installed, and on PATH?",
}
_SHOWN_LINES = 5
_SHOWN_CHARACTERS = 2_000


def last_lines(lines: Sequence[str]) -> str:
    """Return the last lines that are not blank."""
    return "\n".join([line for line in lines if line.strip()][-_SHOWN_LINES:])[-_SHOWN_CHARACTERS:]


def outcome_of(
    completed: CompletedProcess,
    context: StepContext,
    *,
    success: Collection[int] = (0,),
    fatal: Collection[int] = (),
    pick: Callable[[Sequence[str]], str] = last_lines,
    finds_evidence: bool = False,
    more: Sequence[str] = (),
) -> Outcome:
    """Return the outcome of a step whose program has ended, with the program's outputs.

    Args:
        completed: how it ended.
        context: the attempt's.
        success: the exit codes of success.
        fatal: exit codes after which a retry is pointless.
        pick: selects what the message shows of the last lines of standard error.
        finds_evidence: whether exceptions among those lines decide if a retry may help.
        more: further files that hold outputs.
    """
    match completed.reason:
        case EndReason.NOT_STARTED:
            return Outcome(State.FATAL_ERROR, message=f"The program could not be started: {completed.tail[0]}.")
        case EndReason.STOPPED:
            return Outcome(State.STOPPED, message="The program was stopped.")
        case EndReason.TIMED_OUT:
            return Outcome(State.TIMED_OUT, message="The program was stopped because it timed out.")
        case EndReason.LOST:
            return Outcome(State.PLATFORM_ERROR, message=" ".join([_LOST, *completed.tail]))
        case EndReason.EXITED:
            shown = pick(completed.tail)
            state = _state(completed.code, success, fatal, evidence_in(shown) if finds_evidence else ())
            message = "" if state is State.DONE else _message(completed, shown)
            found = Outcome(state, {"exit_code": exit_code(completed.code)}, message=message)
            return with_outputs(found, lambda: read_outputs(completed.folder, *more), context)
        case _:
            assert_never(completed.reason)


_LOST = "The process that supervises the program was killed by something other than calve."


def without_exit_code(outcome: Outcome) -> Outcome:
    """Return an outcome without the output ``exit_code``, for step types that do not declare it."""
    return replace(outcome, outputs={name: value for name, value in outcome.outputs.items() if name != "exit_code"})


def exit_code(code: int) -> int:
    """Return an exit code as a shell gives it: 128 plus the number of a signal."""
    return 128 - code if code < 0 else code


def _state(code: int, success: Collection[int], fatal: Collection[int], evidence: Iterable[Evidence]) -> State:
    if code in success:
        return State.DONE
    if code in fatal:
        return State.FATAL_ERROR
    return state_of([(Kind.EXIT, str(exit_code(code))), *evidence])


def _signal(code: int) -> signal.Signals | None:
    """Return the signal that ended the program; of a shell, also the one that ended the shell's own program."""
    number = exit_code(code) - 128
    is_one = number in {member.value for member in signal.Signals}
    return signal.Signals(number) if is_one else None


def _message(completed: CompletedProcess, shown: str) -> str:
    killer = _signal(completed.code)
    if killer in _KILLED:
        head = f"The program was killed by {killer.name}, not by calve; did the machine run out of memory?"
    elif killer is not None and completed.code < 0:
        head = f"The program was ended by {killer.name}."
    else:
        head = f"The program ended with exit code {completed.code}.{_HINTS.get(completed.code, '')}"
    return f"{head}\n{shown}".rstrip()
