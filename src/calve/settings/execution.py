"""Triggers, workers, and the steps that they execute."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from calve.settings.fields import Duration, Section, Size, Strings, Words, from_json, is_range

_HOST = re.compile(r"\*|(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?")


class TriggerSettings(Section):
    """How triggers start workflows."""

    catch_up_limit: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """The maximum number of missed firings of a time trigger that are made up for: the latest ones."""
    table_interval: Duration = timedelta(seconds=15)
    """How often catalogs are polled for changes of watched tables."""


class WorkerSettings(Section):
    """How workers behave."""

    slots: Annotated[int, Field(ge=1, le=1_000)] = 8
    """How many steps a worker executes concurrently."""
    lease: Duration = timedelta(seconds=10)
    """How long a worker can go without a heartbeat before it counts as dead and others take over its tasks."""
    drain: Duration = timedelta(seconds=5)
    """How long steps may continue after a worker was asked to stop; it ends four seconds later in any case."""
    tries: Annotated[int, Field(ge=1)] = 2
    """How many workers may die while they hold a task before it is set aside and its instance fails."""
    keep_files: Duration = timedelta(days=1)
    """How long the folders of attempts are kept under ``<home>/attempts`` after a failed run; after a successful one,
    workers delete them within a minute."""
    environment: Words = ()
    """Variables of the worker that programs of steps get, besides ``PATH`` and similar ones: names, or patterns such as
    ``AWS_*``."""
    run_as: Annotated[dict[str, str], BeforeValidator(from_json)] = Field(default_factory=dict)
    """The user that programs of a namespace, and of those below it, run as; ``*`` is all namespaces. The worker has to
    run as root."""
    sandbox: Literal["none", "bubblewrap"] = "none"
    """``bubblewrap`` runs programs of steps in a sandbox; the program ``bwrap`` must be installed."""
    sandbox_writable: Words = ()
    """Files and folders that programs in a sandbox can write to, besides the folder of their attempt; applications of
    ``spark-submit`` that write to the embedded lake need ``.calve/lake`` here."""


class StepLogSettings(Section):
    """How much of steps' logs is kept, and where."""

    head: Annotated[Size, Field(ge=1_000, le=100_000_000)] = 4_000_000
    """How many of the first bytes of a step's log the state database stores."""
    tail: Annotated[Size, Field(ge=1_000, le=100_000_000)] = 4_000_000
    """How many of its last bytes the state database stores."""
    location: str | None = None
    """Where whole logs are stored: a folder, or an address of an object store; without it, nowhere."""
    properties: Strings = Field(default_factory=dict)
    """Properties of that object store, by PyIceberg's names."""


class HttpSettings(Section):
    """Which hosts Http steps may call."""

    allow: Words = ()
    """The hosts that ``Http`` steps may call: names, ``*.`` with a domain, addresses and ranges; without any, none."""

    @field_validator("allow")
    @classmethod
    def _are_hosts(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            if not _HOST.fullmatch(entry) and not is_range(entry):
                raise ValueError(f"{entry!r} is not a host name, *. followed by a domain, or an address range")
        return entries


class DockerSettings(Section):
    """Where Docker steps run."""

    host: str = "unix:///var/run/docker.sock"
    """The daemon of ``Docker`` steps: ``unix:///PATH``, ``tcp://HOST:PORT`` or ``https://HOST:PORT``. Default:
    ``DOCKER_HOST``, else ``unix:///var/run/docker.sock``."""


class KubernetesSettings(Section):
    """Where Kubernetes steps run."""

    config: Path | None = None
    """The kubeconfig of ``Kubernetes`` steps. Default: ``KUBECONFIG``, ``~/.kube/config``, or the cluster that calve
    runs in."""
    context: str | None = None
    """The context of the kubeconfig. Default: its current one."""
    namespace: str = "default"
    """The namespace of steps that name none."""
