"""Who may perform an operation: which permission it requires, and where."""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from calve.access import ANONYMOUS, Permission, Principal, allows, allows_somewhere
from calve.errors import AccessError, Forbidden, Unauthenticated
from calve.namespaces import ROOT, namespace_of


class PermissionScope(StrEnum):
    """Where a permission is required."""

    WORKFLOW = "workflow"
    """In the namespace of the workflow that the operation names."""
    EVERYWHERE = "everywhere"
    """In all namespaces: what the operation concerns belongs to no workflow."""
    SOMEWHERE = "somewhere"
    """In some namespace: the operation itself checks each workflow that it reads or changes."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The permission that an operation requires, and its scope."""

    permission: Permission
    scope: PermissionScope = PermissionScope.WORKFLOW

    def check(self, principal: Principal, workflow_id: str) -> None:
        """Refuse a caller who lacks the permission.

        Args:
            principal: the caller.
            workflow_id: the workflow that the operation names; used only with scope WORKFLOW.

        Raises:
            Unauthenticated: the caller is not signed in.
            Forbidden: the caller lacks the permission.
        """
        match self.scope:
            case PermissionScope.WORKFLOW:
                require(principal, self.permission, namespace_of(workflow_id))
            case PermissionScope.EVERYWHERE:
                require(principal, self.permission, ROOT)
            case PermissionScope.SOMEWHERE:
                if not allows_somewhere(principal, self.permission):
                    raise _refusal(principal, f"{self.permission.value} in any namespace")
            case _:
                assert_never(self.scope)


READ = Policy(Permission.READ)
RUN = Policy(Permission.RUN)
EDIT = Policy(Permission.EDIT)
LOGS = Policy(Permission.LOGS)
READ_SOMEWHERE = Policy(Permission.READ, PermissionScope.SOMEWHERE)
RUN_SOMEWHERE = Policy(Permission.RUN, PermissionScope.SOMEWHERE)
EDIT_SOMEWHERE = Policy(Permission.EDIT, PermissionScope.SOMEWHERE)
READ_EVERYWHERE = Policy(Permission.READ, PermissionScope.EVERYWHERE)
EDIT_EVERYWHERE = Policy(Permission.EDIT, PermissionScope.EVERYWHERE)
PUBLIC = Policy(Permission.PUBLIC, PermissionScope.EVERYWHERE)
SIGNED_IN = Policy(Permission.SIGNED_IN, PermissionScope.EVERYWHERE)
ADMINISTER = Policy(Permission.ADMINISTER, PermissionScope.EVERYWHERE)
AUDIT = Policy(Permission.AUDIT, PermissionScope.EVERYWHERE)


def require(principal: Principal, permission: Permission, namespace: str) -> None:
    """Refuse a caller who lacks a permission in a namespace.

    Raises:
        Unauthenticated: the caller is not signed in.
        Forbidden: the caller lacks the permission.
    """
    if allows(principal, permission, namespace):
        return
    where = f" in {namespace}" if namespace else ""
    raise _refusal(principal, f"{permission.value}{where}")


def _refusal(principal: Principal, action: str) -> AccessError:
    return Unauthenticated() if principal == ANONYMOUS else Forbidden(f"{principal.name} may not {action}.")
