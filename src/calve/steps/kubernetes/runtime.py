"""The Kubernetes runtime: starts a job and polls it until it ends, without occupying a worker."""

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from calve.definition.step_types import KUBERNETES
from calve.engine import Outcome, State, StepContext
from calve.settings import KubernetesSettings
from calve.steps.config import fields
from calve.steps.failures import message_of, platform_error, settled
from calve.steps.kubernetes.job_status import JobStatus, job_status
from calve.steps.kubernetes.jobs import ClusterSilent, Jobs
from calve.steps.kubernetes.manifests import ATTEMPT, label, manifest, name_of
from calve.steps.processes import MarkedOutput, Output, with_outputs

_KEPT = "kubernetes"
_FIRST_LOOK_SECONDS = 1.0
_LONGEST_LOOK_SECONDS = 15.0
_MISSES = 20
"""How many polls in a row the cluster may leave unanswered before the step fails: about five minutes."""
_GONE_SECONDS = 120.0
_TICK = 0.2


class Kubernetes:
    """Runs a container as a job whose name follows from the attempt, or from the key that the step gives."""

    def __init__(self, cluster: KubernetesSettings) -> None:
        self._cluster = cluster

    def execute(self, context: StepContext) -> Outcome:
        """Start the job, or check its status."""
        return settled(self._look, context)

    def terminate(self, context: StepContext) -> None:
        """Delete the attempt's job with its pod, and wait until both are gone; a job of another attempt stays."""
        kept = context.artifacts.get(_KEPT)
        if kept is None:
            return  # the attempt did not try to create a job
        until = time.monotonic() + _GONE_SECONDS
        with closing(Jobs(self._cluster, kept["namespace"])) as jobs:
            job = jobs.read(kept["job"])
            if job is None or not _is_ours(job, context):
                return
            jobs.delete(kept["job"])
            while jobs.read(kept["job"]) is not None:
                if time.monotonic() > until:
                    raise platform_error(f"The job {kept['job']} was not deleted within {_GONE_SECONDS:g} s.")
                time.sleep(_TICK)

    def _look(self, context: StepContext) -> Outcome:
        config = fields(context, KUBERNETES)
        named = {"job": name_of(config, context.key), "namespace": config.get("namespace", self._cluster.namespace)}
        kept = {**named, **context.artifacts.get(_KEPT, {})}
        with closing(Jobs(self._cluster, kept["namespace"])) as jobs:
            try:
                return _turn(jobs, config, kept, context)
            except ClusterSilent as silence:  # the job may be running, and a retry would start a second one
                misses = kept.get("misses", 0) + 1
                if misses > _MISSES:
                    raise
                return _again({**kept, "misses": misses}, message_of(silence), misses)


def _turn(jobs: Jobs, config: Mapping[str, Any], kept: dict[str, Any], context: StepContext) -> Outcome:
    if not kept.get("is_started"):
        return _submit(jobs, config, kept, context)
    job = jobs.read(kept["job"])
    if job is None:
        raise platform_error(f"The job {kept['job']} was deleted while the step ran.")
    pod = jobs.pod(kept["job"])
    status = job_status(job, pod)
    if status.state is State.CONTINUE:
        looks = kept.get("looks", 0) + 1
        return _again({**kept, "looks": looks, "misses": 0}, status.message, looks)
    outcome = _outcome(jobs, status, pod, context)
    if not status.is_over and _is_ours(job, context):
        jobs.delete(kept["job"])
    return outcome


def _submit(jobs: Jobs, config: Mapping[str, Any], kept: Mapping[str, Any], context: StepContext) -> Outcome:
    """Create the job, or find the existing one of that name."""
    name = kept["job"]
    body = manifest(config, name, key=context.key, title=context.title, timeout=context.timeout)
    context.keep({_KEPT: kept})
    job = jobs.create(body)
    if job is None:
        job = jobs.read(name)
        if job is None or _is_leaving(job):
            return _again(kept, "An earlier job with the same name is being deleted.", 0)
        if not _is_ours(job, context) and job_status(job, jobs.pod(name)).state not in {State.CONTINUE, State.DONE}:
            jobs.delete(name)
            return _again(kept, "An earlier job with the same key failed, and is being deleted.", 0)
        context.log(f"The job {name} already exists.\n")
    else:
        context.log(f"The job {name} was created.\n")
    return _again({**kept, "is_started": True, "misses": 0}, "The job was created.", 0)


def _again(kept: Mapping[str, Any], message: str, times: int) -> Outcome:
    pause = min(_FIRST_LOOK_SECONDS * 1.5 ** min(times, 20), _LONGEST_LOOK_SECONDS)
    return Outcome(State.CONTINUE, artifacts={_KEPT: dict(kept)}, message=message, poll_after=pause)


def _is_ours(job: Mapping[str, Any], context: StepContext) -> bool:
    labels: Mapping[str, Any] = job["metadata"].get("labels") or {}
    return labels.get(ATTEMPT) == label(context.key)


def _is_leaving(job: Mapping[str, Any]) -> bool:
    return bool(job["metadata"].get("deletionTimestamp"))


def _outcome(jobs: Jobs, status: JobStatus, pod: Mapping[str, Any] | None, context: StepContext) -> Outcome:
    """Return the outcome of a job that has ended, with its program's outputs; log what the program printed."""
    marked = MarkedOutput()
    if pod is not None and status.exit_code is not None:
        output = Output(context.log, context.mask)
        for data in jobs.log(pod["metadata"]["name"]):
            output.feed("O", data)
            marked.feed(data)
        output.close()
    code = {} if status.exit_code is None else {"exit_code": status.exit_code}
    return with_outputs(Outcome(status.state, code, message=status.message), marked.outputs, context)
