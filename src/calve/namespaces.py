"""Namespaces: what stands before the last dot of a name. Workflows, signals, secrets and consumers have them. Pure."""

ROOT = ""
"""The namespace above all others: it covers every workflow, and what belongs to no workflow."""


def namespace_of(name: str) -> str:
    """Return the namespace of a workflow, a signal or a secret: what stands before the last dot of its name."""
    return name.rpartition(".")[0]


def covers(granted: str, namespace: str) -> bool:
    """Return whether a grant in one namespace counts in another: it is that one, or above it."""
    return granted in (ROOT, namespace) or namespace.startswith(f"{granted}.")


def is_for(name: str, workflow_id: str) -> bool:
    """Return whether something with a name of its own, a secret or a connection, is for a workflow.

    It belongs to a namespace as a workflow does, and is for the workflows of that one and of those below it.
    """
    return covers(namespace_of(name), namespace_of(workflow_id))


def workflow_of(consumer: str) -> str:
    """Return the workflow of a consumer or a stream, which are called ``workflow/step``."""
    return consumer.partition("/")[0]


def owns(workflow_id: str, consumer: str) -> bool:
    """Tell whether a consumer is of a workflow's namespace, or of one below it."""
    return covers(namespace_of(workflow_id), namespace_of(workflow_of(consumer)))


def is_shared(consumer: str) -> bool:
    """Tell whether a consumer, such as ``daily``, belongs to no workflow and no namespace."""
    return "/" not in consumer and not namespace_of(consumer)
