"""The Kubernetes step: a container as a job on a cluster."""

from calve.steps.kubernetes.runtime import Kubernetes

__all__ = ["Kubernetes"]
