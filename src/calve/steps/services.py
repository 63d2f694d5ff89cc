"""What the runtimes are given about the installation they work in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from calve.engine.ports import Clock
from calve.settings import Settings
from calve.steps.surroundings import Surroundings

if TYPE_CHECKING:
    from calve.capture import Captures
    from calve.lake import Lake


class Deliveries(Protocol):
    """What capture steps ask about the tables that other steps write exactly once."""

    def delivered(self, capture_id: str) -> bool:
        """Tell whether something of a capture has been published on a target."""
        ...

    def publish_held(self, capture_id: str) -> object:
        """Publish what steps left on their branches until the commit of the capture."""
        ...


class NoDeliveries:
    """Deliveries of an installation in which no step writes exactly once."""

    def delivered(self, capture_id: str) -> bool:  # noqa: ARG002 - the port's signature
        """Tell that nothing has been published."""
        return False

    def publish_held(self, capture_id: str) -> None:
        """Publish nothing: nothing is held."""


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
    settings: Settings
    lake: "Lake"
    """The catalogs of the settings; whoever made the services closes it."""
    captures: "Captures"
    deliveries: Deliveries
    http_allow: tuple[str, ...] = ()
    """The hosts that Http steps may ask."""
    connections: Mapping[str, str] = field(default_factory=dict)
    """The databases of SQL steps, by name."""
    docker_host: str = "unix:///var/run/docker.sock"
    cluster: Cluster = Cluster()
