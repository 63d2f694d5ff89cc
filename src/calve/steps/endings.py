"""What the end of a process means for its step."""

import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import assert_never

from calve.engine.ports import Outcome, State, StepContext
from calve.errors import StepFailed
from calve.steps.failures import told
from calve.steps.outputs import Given, given_by
from calve.steps.processes import Ending, How
from calve.steps.retries import Evidence, Kind, evidence_in, state_of

Told = Callable[[Sequence[str]], str]
"""Picks what to tell out of the last lines of standard error."""
_KILLED = frozenset({signal.SIGKILL, signal.SIGTERM})
_HINTS = {
    126: " A program was found, but could not be run: is it executable?",
    127: " A program was not found: is it installed, and on PATH?",
}
_SHOWN_LINES = 5
_SHOWN_CHARACTERS = 2_000


def outcome(
    ending: Ending,
    context: StepContext,
    *,
    success: Collection[int] = (0,),
    fatal: Collection[int] = (),
    told_by: Told | None = None,
    is_telling: bool = False,
    more: Sequence[str] = (),
) -> Outcome:
    """Return the outcome of a step whose program has ended, with what it gave back.

    Args:
        ending: how it ended.
        context: the attempt's.
        success: the exit codes of success.
        fatal: exit codes that are not worth another try.
        told_by: picks what to tell of the last lines of standard error.
        is_telling: whether the exceptions among those lines tell if another try is worth it.
        more: names of files that hold outputs besides.
    """
    match ending.how:
        case How.NOT_STARTED:
            return Outcome(State.FATAL_ERROR, message=f"The program could not be started: {ending.tail[0]}.")
        case How.STOPPED:
            return Outcome(State.STOPPED, message="The program was ended.")
        case How.TIMED_OUT:
            return Outcome(State.TIMED_OUT, message="The program was ended, as its time was up.")
        case How.LOST:
            return Outcome(State.PLATFORM_ERROR, message=_lost(ending))
        case How.EXITED:
            said = (told_by or last_lines)(ending.tail)
            state = _state(ending.code, success, fatal, evidence_in(said) if is_telling else ())
            message = "" if state is State.DONE else _message(ending, said)
            return _with_outputs(ending, context, state, message, more)
        case _:
            assert_never(ending.how)


def exit_code(code: int) -> int:
    """Return an exit code as shells give it: a signal counts from 128 on."""
    return 128 - code if code < 0 else code


def last_lines(lines: Sequence[str]) -> str:
    """Return the last lines that say something."""
    return "\n".join([line for line in lines if line.strip()][-_SHOWN_LINES:])[-_SHOWN_CHARACTERS:]


def _lost(ending: Ending) -> str:
    return " ".join(["The process that looks after the program was killed from outside.", *ending.tail])


def _state(code: int, success: Collection[int], fatal: Collection[int], said: Iterable[Evidence]) -> State:
    if code in success:
        return State.DONE
    if code in fatal:
        return State.FATAL_ERROR
    return state_of([(Kind.EXIT, str(exit_code(code))), *said])


def _signal(code: int) -> signal.Signals | None:
    """Return the signal that ended the program, or one of its own programs if it is a shell."""
    number = exit_code(code) - 128
    is_one = number in {member.value for member in signal.Signals}
    return signal.Signals(number) if is_one else None


def _message(ending: Ending, said: str) -> str:
    killer = _signal(ending.code)
    if killer in _KILLED:
        head = f"The program was killed by {killer.name}, not by calve; did the machine run out of memory?"
    elif killer is not None and ending.code < 0:
        head = f"The program was ended by {killer.name}."
    else:
        head = f"The program ended with exit code {ending.code}.{_HINTS.get(ending.code, '')}"
    return f"{head}\n{said}".rstrip()


def _with_outputs(ending: Ending, context: StepContext, state: State, message: str, more: Sequence[str]) -> Outcome:
    code = {"exit_code": exit_code(ending.code)}
    try:
        given = given_by(ending.place, *more)
    except StepFailed as failure:
        if state is State.DONE:
            return Outcome(State(failure.context["state"]), code, message=told(failure))
        context.log(f"{told(failure)}\n")
        given = Given()
    return Outcome(state, {**given.params, **code}, given.artifacts, message)
