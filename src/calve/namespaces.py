"""Namespaces of workflows, signals, secrets and consumers: the part of a name before the last dot. Pure."""

ROOT = ""
"""The namespace above all others: it covers every workflow, and everything outside workflows."""


def namespace_of(name: str) -> str:
    """Return the namespace of a workflow, a signal or a secret: the part of its name before the last dot."""
    return name.rpartition(".")[0]


def covers(granted: str, namespace: str) -> bool:
    """Return whether a grant in one namespace applies to another: to itself, and to all namespaces below it."""
    return granted in (ROOT, namespace) or namespace.startswith(f"{granted}.")


def is_for(name: str, workflow_id: str) -> bool:
    """Return whether a workflow may use a secret or a connection.

    Workflows in its namespace and below it may.
    """
    return covers(namespace_of(name), namespace_of(workflow_id))


def workflow_of(consumer: str) -> str:
    """Return the workflow of a consumer or a stream, whose names are ``workflow/step``."""
    return consumer.partition("/")[0]


def owns(workflow_id: str, consumer: str) -> bool:
    """Return whether a consumer belongs to a workflow's namespace, or to one below it."""
    return covers(namespace_of(workflow_id), namespace_of(workflow_of(consumer)))


def is_shared(consumer: str) -> bool:
    """Return whether a consumer, such as ``daily``, belongs to no workflow and no namespace."""
    return "/" not in consumer and not namespace_of(consumer)
