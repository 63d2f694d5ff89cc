"""Access: users and their roles, tokens, secrets, the audit log."""

from typing import Annotated

from fastapi import Query

from calve.api import Call, Paged
from calve.operations import ADMINISTER, AUDIT, SIGNED_IN, Operations
from calve.web.frame import may
from calve.web.page import Page, Pages
from calve.web.pages.parts import part_of

pages = Pages("access", is_slow=True)
_LINES = 50
_Before = Annotated[int | None, Query(ge=1, lt=2**63)]


@pages.get("/users", "users_page", ADMINISTER)
def users(call: Call, page: Paged) -> Page:
    """List the users and their roles."""
    document = Operations(call).users()
    return Page("access/users.html", "Users", document, {"part": part_of(document, page, "name")}, here="more")


@pages.get("/tokens", "tokens_page", SIGNED_IN)
def tokens(call: Call, page: Paged) -> Page:
    """List the caller's tokens; an administrator sees all."""
    document = Operations(call).tokens()
    return Page("access/tokens.html", "Tokens", document, {"part": part_of(document, page, "token_id")}, here="more")


@pages.get("/secrets", "secrets_page", ADMINISTER)
def secrets(call: Call, page: Paged) -> Page:
    """List the names of secrets; nothing shows their texts."""
    document = Operations(call).secrets()
    return Page("access/secrets.html", "Secrets", document, {"part": part_of(document, page, "name")}, here="more")


@pages.get("/audit", "audit_page", AUDIT)
def audit(call: Call, before: _Before = None, *, verify: bool = False) -> Page:
    """List the lines of the audit log, newest first, and verify the whole log if requested."""
    operations = Operations(call)
    document = operations.audit(_LINES, before)
    values = {
        "before": before,
        "older": document[-1]["seq"] if len(document) == _LINES and document[-1]["seq"] > 1 else None,
        "shown": _names(operations) if may(call, "list_users") else {},
        "verified": operations.verify_audit() if verify else None,
    }
    return Page("access/audit.html", "Audit log", document, values, here="more")


def _names(operations: Operations) -> dict[str, str]:
    """Return the display names of users by the names that the audit log has for them."""
    return {f"user:{one['name']}": one["shown"] for one in operations.users()}
