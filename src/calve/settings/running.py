"""How workflows are started by themselves, and how and where their steps are carried out."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from calve.settings.fields import Duration, Section, Size, Strings, Words, from_json, is_range

_HOST = re.compile(r"\*|(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?")


class TriggerSettings(Section):
    """How workflows are started by themselves."""

    catch_up_limit: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """How many missed firings of a time trigger are made up for at most: the latest ones."""
    table_interval: Duration = timedelta(seconds=15)
    """How often catalogs are asked whether watched tables have changed."""


class WorkerSettings(Section):
    """How workers behave."""

    slots: Annotated[int, Field(ge=1, le=1_000)] = 8
    """How many steps a worker carries out at once."""
    lease: Duration = timedelta(seconds=10)
    """After how long a silent worker counts as dead, and others take over."""
    drain: Duration = timedelta(seconds=5)
    """How long steps may go on after a worker was told to end; it is over four seconds later, whatever runs."""
    tries: Annotated[int, Field(ge=1)] = 2
    """How many workers may die over a task before it is set aside, and its instance fails."""
    keep_files: Duration = timedelta(days=1)
    """How long the folders of attempts are kept after a run that failed; after one that succeeded, they go."""
    environment: Words = ()
    """The variables of the worker that programs of steps are given, besides PATH and its like; ``AWS_*`` is allowed."""
    run_as: Annotated[dict[str, str], BeforeValidator(from_json)] = Field(default_factory=dict)
    """The user that programs of a namespace run as, and of those below it; ``*`` is all namespaces."""
    sandbox: Literal["none", "bubblewrap"] = "none"
    """What programs of steps are run in."""
    sandbox_writable: Words = ()
    """Files and folders that programs in a sandbox can write to, besides the folder of their attempt."""


class StepLogSettings(Section):
    """What is kept of what steps write into their logs."""

    head: Annotated[Size, Field(ge=1_000, le=100_000_000)] = 4_000_000
    """How many of the first bytes of a log the state database keeps."""
    tail: Annotated[Size, Field(ge=1_000, le=100_000_000)] = 4_000_000
    """How many of the last."""
    location: str | None = None
    """Where whole logs are kept: a folder, or an address of an object store; nowhere, if it is not given."""
    properties: Strings = Field(default_factory=dict)
    """How to get into the object store, in the words of PyIceberg."""


class HttpSettings(Section):
    """What Http steps may do."""

    allow: Words = ()
    """The hosts that they may ask: names, ``*.`` with a domain, addresses and ranges; none, if it is empty."""

    @field_validator("allow")
    @classmethod
    def _are_hosts(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            if not _HOST.fullmatch(entry) and not is_range(entry):
                raise ValueError(f"{entry!r} is neither the name of a host, *. with a domain, nor a range of addresses")
        return entries


class DockerSettings(Section):
    """Where Docker steps run."""

    host: str = "unix:///var/run/docker.sock"
    """The daemon: ``unix:///PATH``, ``tcp://HOST:PORT`` or ``https://HOST:PORT``."""


class KubernetesSettings(Section):
    """Where Kubernetes steps run."""

    config: Path | None = None
    """The kubeconfig; by default ``KUBECONFIG``, ``~/.kube/config``, or the cluster that calve runs in."""
    context: str | None = None
    """The context of the kubeconfig; by default its current one."""
    namespace: str = "default"
