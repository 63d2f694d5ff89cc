"""Who may do what, where."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from calve.errors import RequestInvalid
from calve.namespaces import ROOT, covers, namespace_of


class Permission(StrEnum):
    """What may be done; every route names one."""

    PUBLIC = "public"
    """By anybody, without a name: health, signing in."""
    SIGNED_IN = "signed_in"
    """By everybody whom we know, whatever may be done by them: who am I."""
    READ = "read"
    LOGS = "logs"
    RUN = "run"
    EDIT = "edit"
    ADMINISTER = "administer"
    AUDIT = "audit"


class Role(StrEnum):
    """A set of permissions with a name; each one may do what those before it may."""

    VIEWER = "viewer"
    RUNNER = "runner"
    EDITOR = "editor"
    ADMIN = "admin"

    @property
    def permissions(self) -> frozenset[Permission]:
        """What this role may do."""
        return _PERMISSIONS[self]


_VIEWER = frozenset({Permission.READ, Permission.LOGS})
_RUNNER = _VIEWER | {Permission.RUN}
_EDITOR = _RUNNER | {Permission.EDIT}
_ADMIN = _EDITOR | {Permission.ADMINISTER, Permission.AUDIT}
_PERMISSIONS: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {Role.VIEWER: _VIEWER, Role.RUNNER: _RUNNER, Role.EDITOR: _EDITOR, Role.ADMIN: _ADMIN}
)


class PrincipalKind(StrEnum):
    """How we know who it is."""

    USER = "user"
    TOKEN = "token"  # noqa: S105 - a kind, no password
    LOOPBACK = "loopback"
    """Nobody said a name, and nobody has to: the server listens on this machine only."""
    ANONYMOUS = "anonymous"


Grants = Mapping[str, Role]
"""The role somebody has in each namespace, and in those below it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who asks for something, and the roles that he has."""

    name: str
    kind: PrincipalKind
    grants: Grants = field(default_factory=dict)


ANONYMOUS = Principal("anonymous", PrincipalKind.ANONYMOUS)
"""Somebody of whom we know nothing; only what is public is for him."""

LOOPBACK = Principal("local", PrincipalKind.LOOPBACK, MappingProxyType({ROOT: Role.ADMIN}))
"""Whoever sits at this machine, while the server can be reached from nowhere else."""


def allows(principal: Principal, permission: Permission, namespace: str) -> bool:
    """Return whether somebody may do that in this namespace; `ROOT` is for what belongs to no workflow."""
    match permission:
        case Permission.PUBLIC:
            return True
        case Permission.SIGNED_IN:
            return principal.kind is not PrincipalKind.ANONYMOUS
        case _:
            roles = (role for granted, role in principal.grants.items() if covers(granted, namespace))
            return any(permission in role.permissions for role in roles)


def allows_somewhere(principal: Principal, permission: Permission) -> bool:
    """Return whether there is any namespace where somebody may do that: enough to ask for a list, which is filtered."""
    return any(allows(principal, permission, granted) for granted in (ROOT, *principal.grants))


def namespaces(principal: Principal, permission: Permission) -> tuple[str, ...]:
    """Return the namespaces that cover all where somebody may do that; (ROOT,) is everywhere, () is nowhere."""
    granted = [name for name, role in principal.grants.items() if permission in role.permissions]
    return tuple(sorted(one for one in granted if not any(covers(other, one) for other in granted if other != one)))


def visible(principal: Principal, permission: Permission, workflow_ids: Iterable[str]) -> list[str]:
    """Return those of the workflows with which somebody may do that."""
    return [one for one in workflow_ids if allows(principal, permission, namespace_of(one))]


def limited(grants: Grants, by: Grants) -> dict[str, Role]:
    """Return what is left of grants for somebody who can give no more than he has himself."""
    kept: dict[str, Role] = {}
    for name in {*grants, *by}:
        own, most = _best(grants, name), _best(by, name)
        if own is not None and most is not None:
            kept[name] = min(own, most, key=list(Role).index)
    return kept


def _best(grants: Grants, namespace: str) -> Role | None:
    covering = (role for granted, role in grants.items() if covers(granted, namespace))
    return max(covering, key=list(Role).index, default=None)


def parse_grants(texts: Iterable[str]) -> dict[str, Role]:
    """Read ``viewer`` (everywhere) or ``runner@sales.eu`` (in that namespace, and below it).

    Raises:
        RequestInvalid: there is no such role, or it is no name of a namespace.
    """
    grants: dict[str, Role] = {}
    for text in texts:
        role, _, namespace = text.partition("@")
        if role not in set(Role) or not re.fullmatch(r"(?:[\w-]+(?:\.[\w-]+)*)?", namespace):
            raise RequestInvalid(
                f"{text!r} is no grant.",
                remedy=f"Write one of {', '.join(Role)}, and @NAMESPACE if it is for one only.",
            )
        grants[namespace] = Role(role)
    return grants


def written(grants: Grants) -> list[str]:
    """Return grants as ``parse_grants`` reads them."""
    return [f"{role}@{namespace}" if namespace else str(role) for namespace, role in sorted(grants.items())]
