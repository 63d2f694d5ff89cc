"""Who may do what: people, tokens, roles, the audit log and secrets; it knows no HTTP."""

from calve.access.auditing import Verdict, chained, pruned, verify
from calve.access.credentials import csrf_of, is_same
from calve.access.door import Door, SignedIn, who
from calve.access.model import (
    ANONYMOUS,
    LOOPBACK,
    Grants,
    Permission,
    Principal,
    PrincipalKind,
    Role,
    allows,
    allows_somewhere,
    namespaces,
    parse_grants,
    visible,
    written,
)
from calve.access.office import By, Office
from calve.access.ports import AccessState, SecretState
from calve.access.records import Act, Entry, SealedSecret, Session, Token, User
from calve.access.throttling import Backoff, Rate, network_of
from calve.namespaces import ROOT, namespace_of

__all__ = [
    "ANONYMOUS",
    "LOOPBACK",
    "ROOT",
    "AccessState",
    "Act",
    "Backoff",
    "By",
    "Door",
    "Entry",
    "Grants",
    "Office",
    "Permission",
    "Principal",
    "PrincipalKind",
    "Rate",
    "Role",
    "SealedSecret",
    "SecretState",
    "Session",
    "SignedIn",
    "Token",
    "User",
    "Verdict",
    "allows",
    "allows_somewhere",
    "chained",
    "csrf_of",
    "is_same",
    "namespace_of",
    "namespaces",
    "network_of",
    "parse_grants",
    "pruned",
    "verify",
    "visible",
    "who",
    "written",
]
