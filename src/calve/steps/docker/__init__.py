"""The Docker step: a container on the worker's machine."""

from calve.steps.docker.runtime import Docker

__all__ = ["Docker"]
