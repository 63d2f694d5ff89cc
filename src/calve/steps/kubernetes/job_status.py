"""Derives the state of a step from the status of its Kubernetes job and pod. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calve.engine import State
from calve.steps.retries import Kind, state_of

_HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"})
"""The reasons of waiting containers that will never start."""
_PULLING = frozenset({"ImagePullBackOff"})
"""The reasons of waiting containers whose image could not be pulled; Kubernetes keeps trying."""
_CANNOT_RUN = frozenset({"ContainerCannotRun", "StartError"})
_OF_THE_PLATFORM = frozenset(
    {"Evicted", "Preempting", "NodeLost", "NodeShutdown", "Shutdown", "Terminated", "UnexpectedAdmissionError"}
)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The status of a job; CONTINUE until it has ended."""

    state: State
    message: str = ""
    exit_code: int | None = None
    is_over: bool = True
    """Whether Kubernetes has finished the job; otherwise its container may still start."""


def job_status(job: Mapping[str, Any], pod: Mapping[str, Any] | None) -> JobStatus:
    """Return the status of a job."""
    conditions = _conditions(job)
    ended = _terminated(pod)
    if "Complete" in conditions:
        return JobStatus(State.DONE, exit_code=ended.get("exitCode", 0))
    if "Failed" in conditions:
        return _failed(conditions["Failed"], pod, ended)
    waiting = _container(pod).get("state", {}).get("waiting", {})
    told = _told(waiting.get("reason"), waiting.get("message"))
    if waiting.get("reason") in _HOPELESS or (waiting.get("reason") in _PULLING and not _may_come(told)):
        return JobStatus(State.FATAL_ERROR, f"The container cannot be started: {told}.", is_over=False)
    return JobStatus(State.CONTINUE, _progress(pod, told), is_over=False)


def _may_come(told: str) -> bool:
    """Tell whether pulling the image may succeed later, for example if the registry throttles requests."""
    return state_of([(Kind.IMAGE, told)]) is State.PLATFORM_ERROR


def _failed(condition: Mapping[str, Any], pod: Mapping[str, Any] | None, ended: Mapping[str, Any]) -> JobStatus:
    code = ended.get("exitCode")
    if condition.get("reason") == "DeadlineExceeded":
        return JobStatus(State.TIMED_OUT, "The cluster ended the job because its time limit had passed.", code)
    if (lost := _lost(pod, ended)) or code is None:
        message = lost or f"The job failed: {_told(condition.get('reason'), condition.get('message'))}."
        return JobStatus(State.PLATFORM_ERROR, message, code)
    told = _told(ended.get("reason"), ended.get("message"))
    if ended.get("reason") in _CANNOT_RUN:
        return JobStatus(State.FATAL_ERROR, f"The program could not be started: {told}.", code)
    return JobStatus(state_of([(Kind.EXIT, str(code))]), f"The program ended with exit code {code}.", code)


def _lost(pod: Mapping[str, Any] | None, ended: Mapping[str, Any]) -> str:
    """Return why the cluster ended the program; empty if the program ended by itself."""
    status = pod.get("status", {}) if pod else {}
    if ended.get("reason") == "OOMKilled":
        return "The container was killed: it used more memory than kubernetes.memory allows."
    if status.get("reason") in _OF_THE_PLATFORM:
        return f"The pod was ended by the cluster: {_told(status['reason'], status.get('message'))}."
    disruption = _conditions(pod or {}).get("DisruptionTarget")
    if disruption:
        return f"The pod was ended by the cluster: {_told(disruption.get('reason'), disruption.get('message'))}."
    return "" if pod else "The pod is gone."


def _progress(pod: Mapping[str, Any] | None, waiting: str) -> str:
    if pod is None:
        return "There is no pod yet."
    held_up = next((item for item in _all_conditions(pod) if item["type"] == "PodScheduled"), {})
    told = _told(held_up.get("reason"), held_up.get("message")) if held_up.get("status") == "False" else waiting
    phase = pod.get("status", {}).get("phase", "Pending")
    return f"{phase}: {told}" if told else str(phase)


def _conditions(thing: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {item["type"]: item for item in _all_conditions(thing) if item.get("status") == "True"}


def _all_conditions(thing: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(thing.get("status", {}).get("conditions") or [])


def _container(pod: Mapping[str, Any] | None) -> Mapping[str, Any]:
    statuses = (pod or {}).get("status", {}).get("containerStatuses") or [{}]
    first: Mapping[str, Any] = statuses[0]
    return first


def _terminated(pod: Mapping[str, Any] | None) -> Mapping[str, Any]:
    ended: Mapping[str, Any] = _container(pod).get("state", {}).get("terminated", {})
    return ended


def _told(reason: str | None, message: str | None) -> str:
    return ": ".join(part.rstrip(".") for part in (reason, message) if part)
