"""Namespaces: what stands before the last dot of a name. Workflows, signals, secrets and consumers have them. Pure."""

ROOT = ""
"""The namespace above all others: it covers every workflow, and what belongs to no workflow."""


def namespace_of(name: str) -> str:
    """Return the namespace of a workflow, a signal or a secret: what stands before the last dot of its name."""
    return name.rpartition(".")[0]


def covers(granted: str, namespace: str) -> bool:
    """Return whether a grant in one namespace counts in another: it is that one, or above it."""
    return granted in (ROOT, namespace) or namespace.startswith(f"{granted}.")


def workflow_of(consumer: str) -> str:
    """Return the workflow of a consumer or a stream, which are called ``workflow/step``."""
    return consumer.partition("/")[0]


def is_shared(consumer: str) -> bool:
    """Tell whether a consumer, such as ``daily``, belongs to no workflow and no namespace."""
    return "/" not in consumer and not namespace_of(consumer)
