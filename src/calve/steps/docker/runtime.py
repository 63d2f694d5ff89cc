"""The Docker runtime: runs a container until it ends, and finds it again after a crash."""

import threading
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from calve.definition.step_types import DOCKER
from calve.engine import Outcome, State, StepContext
from calve.errors import StepFailed
from calve.steps.config import fields
from calve.steps.docker.containers import creation, name_of
from calve.steps.docker.daemon import Daemon, ImageMissing
from calve.steps.failures import interrupted, message_of, platform_error, settled
from calve.steps.processes import MarkedOutput, Output, ProgramOutputs, last_lines, with_outputs
from calve.steps.retries import Kind, state_of

_KEPT = "docker"
_FIRST_LOOK_SECONDS = 0.05
_LONGEST_LOOK_SECONDS = 1.0
_LOG_SECONDS = 10.0
_OVER = frozenset({"exited", "dead"})


class Docker:
    """Starts a container named after the attempt, waits for its end and removes it.

    A worker that takes over the attempt on the same machine finds the container by its name, waits for it, and logs
    its output again from the beginning; a worker on another machine starts a new container.
    """

    def __init__(self, host: str, grace_seconds: float) -> None:
        self._host = host
        self._grace_seconds = grace_seconds

    def execute(self, context: StepContext) -> Outcome:
        """Run the container until it ends."""
        return settled(self._run, context)

    def terminate(self, context: StepContext) -> None:
        """Stop and remove the attempt's container; do nothing if the attempt did not try to create one."""
        if _KEPT not in context.artifacts:
            return
        name = name_of(context.key)
        with closing(Daemon(self._host)) as daemon:
            daemon.stop(name, self._grace_seconds)
            daemon.remove(name)

    def _run(self, context: StepContext) -> Outcome:
        config = fields(context, DOCKER)
        name = name_of(context.key)
        with closing(Daemon(self._host)) as daemon:
            ending = context.artifacts.get(_KEPT, {}).get("ending")
            if ending is None:
                ending = self._finish(daemon, name, config, context)
                context.keep({_KEPT: {"container": name, "host": self._host, "ending": ending}})
            daemon.remove(name)
        return Outcome(State(ending["state"]), ending["outputs"], ending["artifacts"], ending["message"])

    def _finish(self, daemon: Daemon, name: str, config: Mapping[str, Any], context: StepContext) -> dict[str, Any]:
        context.keep({_KEPT: {"container": name, "host": self._host}})
        _start(daemon, name, config, context)
        follower = _Follower(daemon, name, context)
        follower.start()
        state = _wait(daemon, name, context)
        if state is None:
            daemon.stop(name, self._grace_seconds)
            follower.join(_LOG_SECONDS)
            daemon.remove(name)
            raise interrupted("The container")
        follower.join(_LOG_SECONDS)
        found = _outcome(state, follower, context)
        return {
            "state": found.state,
            "message": found.message,
            "outputs": dict(found.outputs),
            "artifacts": dict(found.artifacts),
        }


def _start(daemon: Daemon, name: str, config: Mapping[str, Any], context: StepContext) -> None:
    """Create and start the container, unless it exists or was started before."""
    state = daemon.state(name)
    if state is None:
        if not context.is_first:
            context.log(f"The container {name} does not exist on this machine; starting it.\n")
        _create(daemon, name, config, context)
        state = daemon.state(name) or {}
    else:
        context.log(f"The container {name} already exists: {state['Status']}. Its log follows, from the beginning.\n")
    if state.get("Status") == "created":
        try:
            daemon.start(name)
        except StepFailed:
            daemon.remove(name)
            raise


def _create(daemon: Daemon, name: str, config: Mapping[str, Any], context: StepContext) -> None:
    body = creation(config, context.key, context.title)
    if config["pull"] == "always":
        _pull(daemon, config["image"], context)
    try:
        daemon.create(name, body)
    except ImageMissing:
        if config["pull"] != "missing":
            raise
        _pull(daemon, config["image"], context)
        daemon.create(name, body)


def _pull(daemon: Daemon, image: str, context: StepContext) -> None:
    context.log(f"Fetching the image {image}\n")
    for _ in daemon.pull(image):
        if context.is_interrupted():
            raise interrupted("Fetching the image")


def _wait(daemon: Daemon, name: str, context: StepContext) -> Mapping[str, Any] | None:
    """Wait until the container has ended and return its state; None if the step was interrupted first."""
    pause = _FIRST_LOOK_SECONDS
    while True:
        state = daemon.state(name)
        if state is None:
            raise platform_error(f"The container {name} was removed while the step ran.")
        if state["Status"] in _OVER:
            return state
        if context.wait(pause):
            return None
        pause = min(pause * 2, _LONGEST_LOOK_SECONDS)


class _Follower(threading.Thread):
    """Logs what the container prints while it runs."""

    def __init__(self, daemon: Daemon, name: str, context: StepContext) -> None:
        super().__init__(name="calve-docker-log", daemon=True)
        self._daemon = daemon
        self._container = name
        self._context = context
        self._output = Output(context.log, context.mask)
        self._marked = {"O": MarkedOutput(), "E": MarkedOutput()}

    def run(self) -> None:
        """Read until the container ends."""
        try:
            for letter, data in self._daemon.output(self._container):
                self._output.feed(letter, data)
                self._marked[letter].feed(data)
        except StepFailed as failure:
            self._context.log(f"The log was interrupted: {message_of(failure)}\n")
        self._output.close()

    def outputs(self) -> ProgramOutputs:
        """Return the program's outputs."""
        return self._marked["O"].outputs().then(self._marked["E"].outputs())

    def tail(self) -> str:
        """Return the last lines of standard error."""
        return last_lines(list(self._output.tail))


def _outcome(state: Mapping[str, Any], follower: _Follower, context: StepContext) -> Outcome:
    """Return the outcome of a container that has ended."""
    code = int(state["ExitCode"])
    outputs = {"exit_code": code}
    if state.get("OOMKilled"):
        message = "The container was killed: it used more memory than docker.memory allows."
        outcome = Outcome(State.PLATFORM_ERROR, outputs, message=message)
    elif code == 0 and not state.get("Error"):
        outcome = Outcome(State.DONE, outputs)
    else:
        reason = f" {state['Error']}." if state.get("Error") else ""
        message = f"The container ended with exit code {code}.{reason}\n{follower.tail()}".rstrip()
        outcome = Outcome(state_of([(Kind.EXIT, str(code))]), outputs, message=message)
    return with_outputs(outcome, follower.outputs, context)
