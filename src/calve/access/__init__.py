"""Who may do what: people, tokens, roles, the audit log and secrets; it knows no HTTP."""

from calve.access.model import (
    ANONYMOUS,
    LOOPBACK,
    ROOT,
    Grants,
    Permission,
    Principal,
    PrincipalKind,
    Role,
    allows,
    allows_somewhere,
    namespace_of,
    namespaces,
    visible,
)

__all__ = [
    "ANONYMOUS",
    "LOOPBACK",
    "ROOT",
    "Grants",
    "Permission",
    "Principal",
    "PrincipalKind",
    "Role",
    "allows",
    "allows_somewhere",
    "namespace_of",
    "namespaces",
    "visible",
]
