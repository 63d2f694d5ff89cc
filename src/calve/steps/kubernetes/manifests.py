"""Translates the fields of a Kubernetes step into the manifest of its job. Pure."""

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Any

from calve.steps.config import text, texts

CONTAINER = "main"
ATTEMPT = "calve/attempt"
"""The label with the attempt that a job belongs to."""
_KEPT_SECONDS = 86_400
"""How long Kubernetes keeps a finished job, so that a worker that takes over, or an operator, can still find it."""
_MARGIN_SECONDS = 60
_NAME_LENGTH = 63
_RESOURCES = {"cpu": "cpu", "memory": "memory", "disk": "ephemeral-storage", "gpu": "nvidia.com/gpu"}


def name_of(config: Mapping[str, Any], key: str) -> str:
    """Return the name of a step's job: the same for the same attempt or deduplication key, so it never starts twice."""
    dedup = config.get("job_deduplication_key")
    end = _digest(str(dedup)) if dedup else _dns(key)
    if len(end) > _NAME_LENGTH - 10:
        end = _digest(key)
    start = _dns(config["app_name"])[: _NAME_LENGTH - 1 - len(end)].strip("-")
    return f"{start or 'job'}-{end}"


def manifest(config: Mapping[str, Any], name: str, *, key: str, title: str, timeout: float | None) -> dict[str, Any]:
    """Return the manifest of the job: one pod that is never restarted, deleted a day after it ends.

    Kubernetes itself ends the job when the attempt's time limit has passed, even if no worker polls it any more.
    """
    labels = {
        "app.kubernetes.io/name": label(config["app_name"]),
        "app.kubernetes.io/managed-by": "calve",
        ATTEMPT: label(key),
    }
    annotations = {"calve/step": title}
    if "owner_email" in config:
        annotations["calve/owner-email"] = config["owner_email"]
    pod: dict[str, Any] = {"restartPolicy": "Never", "containers": [_container(config)]}
    if "service_account" in config:
        pod["serviceAccountName"] = config["service_account"]
    spec: dict[str, Any] = {
        "backoffLimit": 0,
        "ttlSecondsAfterFinished": _KEPT_SECONDS,
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod},
    }
    if timeout is not None:
        spec["activeDeadlineSeconds"] = max(math.ceil(timeout), 0) + _MARGIN_SECONDS
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def label(value: str) -> str:
    """Return a text as a valid label value."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", value)[:_NAME_LENGTH].strip("-_.")


def _container(config: Mapping[str, Any]) -> dict[str, Any]:
    amounts = {resource: text(config[name]) for name, resource in _RESOURCES.items() if name in config}
    container = {
        "name": CONTAINER,
        "image": config["image"],
        "command": list(config.get("command", [])),
        "args": [text(item) for item in config.get("args", [])],
        "env": [{"name": name, "value": value} for name, value in texts(config.get("env", {})).items()],
        "resources": {"requests": amounts, "limits": amounts} if amounts else {},
        "lifecycle": _before_stop(config["pre_stop"]) if "pre_stop" in config else {},
    }
    return {name: value for name, value in container.items() if value}


def _before_stop(command: str) -> dict[str, Any]:
    return {"preStop": {"exec": {"command": ["/bin/sh", "-c", command]}}}


def _dns(name: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:16]
