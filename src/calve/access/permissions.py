"""Permissions, roles, and in which namespaces they hold. Pure."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from calve.errors import RequestInvalid
from calve.namespaces import ROOT, covers


class Permission(StrEnum):
    """What may be done; every operation requires one."""

    PUBLIC = "public"
    """Without authentication: health, signing in."""
    SIGNED_IN = "signed_in"
    """For every authenticated caller, whatever their roles: who am I."""
    READ = "read"
    LOGS = "logs"
    RUN = "run"
    EDIT = "edit"
    ADMINISTER = "administer"
    AUDIT = "audit"


class Role(StrEnum):
    """A named set of permissions; each role includes those before it."""

    VIEWER = "viewer"
    RUNNER = "runner"
    EDITOR = "editor"
    ADMIN = "admin"

    @property
    def permissions(self) -> frozenset[Permission]:
        """The permissions of this role."""
        return _PERMISSIONS[self]


_VIEWER = frozenset({Permission.READ, Permission.LOGS})
_RUNNER = _VIEWER | {Permission.RUN}
_EDITOR = _RUNNER | {Permission.EDIT}
_ADMIN = _EDITOR | {Permission.ADMINISTER, Permission.AUDIT}
_PERMISSIONS: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {Role.VIEWER: _VIEWER, Role.RUNNER: _RUNNER, Role.EDITOR: _EDITOR, Role.ADMIN: _ADMIN}
)


class PrincipalKind(StrEnum):
    """How a caller was authenticated."""

    USER = "user"
    TOKEN = "token"  # noqa: S105 - a kind, no password
    LOOPBACK = "loopback"
    """Without credentials: the server listens on this machine only."""
    ANONYMOUS = "anonymous"


Grants = Mapping[str, Role]
"""The role in each namespace, and in those below it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller, with their roles."""

    name: str
    kind: PrincipalKind
    grants: Grants = field(default_factory=dict)
    shown: str = field(default="", compare=False)
    """The display name, if it differs."""


ANONYMOUS = Principal("anonymous", PrincipalKind.ANONYMOUS)
"""An unauthenticated caller, who can use only what is public."""

LOOPBACK = Principal("local", PrincipalKind.LOOPBACK, MappingProxyType({ROOT: Role.ADMIN}))
"""A caller on this machine, while the server can be reached from nowhere else."""


def allows(principal: Principal, permission: Permission, namespace: str) -> bool:
    """Return whether a caller has a permission in a namespace; `ROOT` is for what belongs to no workflow."""
    match permission:
        case Permission.PUBLIC:
            return True
        case Permission.SIGNED_IN:
            return principal.kind is not PrincipalKind.ANONYMOUS
        case _:
            roles = (role for granted, role in principal.grants.items() if covers(granted, namespace))
            return any(permission in role.permissions for role in roles)


def allows_somewhere(principal: Principal, permission: Permission) -> bool:
    """Return whether a caller has a permission in any namespace: enough to ask for a list, which is filtered."""
    return any(allows(principal, permission, granted) for granted in (ROOT, *principal.grants))


def namespaces(principal: Principal, permission: Permission) -> tuple[str, ...]:
    """Return the topmost namespaces in which a caller has a permission; (ROOT,) is everywhere, () is nowhere."""
    granted = [name for name, role in principal.grants.items() if permission in role.permissions]
    return tuple(sorted(one for one in granted if not any(covers(other, one) for other in granted if other != one)))


def local_principal() -> Principal:
    """Return the user who runs this program on the project itself, where they may do everything."""
    import getpass

    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container may know its user by number only
        name = str(os.getuid())
    return replace(LOOPBACK, name=name)


def limited(grants: Grants, by: Grants) -> dict[str, Role]:
    """Return the grants limited to those of the caller, who cannot grant more than they have."""
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
        RequestInvalid: the role or the namespace is invalid.
    """
    grants: dict[str, Role] = {}
    for text in texts:
        role, _, namespace = text.partition("@")
        if role not in set(Role) or not re.fullmatch(r"(?:[\w-]+(?:\.[\w-]+)*)?", namespace):
            raise RequestInvalid(
                f"{text!r} is not a valid grant.",
                remedy=f"Write one of {', '.join(Role)}, followed by @NAMESPACE to limit it to one namespace.",
            )
        grants[namespace] = Role(role)
    return grants


def written(grants: Grants) -> list[str]:
    """Return grants as ``parse_grants`` reads them."""
    return [f"{role}@{namespace}" if namespace else str(role) for namespace, role in sorted(grants.items())]
