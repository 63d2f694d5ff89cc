"""What the runtimes are given about the installation they work in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from calve.engine.ports import Clock
from calve.steps.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Cluster:
    """The Kubernetes cluster to run jobs on."""

    config: Path | None = None
    """The kubeconfig; None for where the client looks for one itself, or the cluster that calve runs in."""
    context: str | None = None
    """The context of the kubeconfig; None for its current one."""
    namespace: str = "default"
    """The namespace of steps that name none."""


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that a built-in runtime may need."""

    clock: Clock
    surroundings: Surroundings
    http_allow: tuple[str, ...] = ()
    """The hosts that Http steps may ask."""
    connections: Mapping[str, str] = field(default_factory=dict)
    """The databases of SQL steps, by name."""
    docker_host: str = "unix:///var/run/docker.sock"
    cluster: Cluster = Cluster()
