"""Who may come in, and what they did, as documents; never a secret. Pure."""

from calve.access import Entry, Principal, Token, User, written
from calve.api.documents import Json


def principal_json(principal: Principal) -> Json:
    """Return who asks, and what he may do."""
    return {"name": principal.name, "kind": principal.kind, "grants": written(principal.grants)}


def user_json(user: User) -> Json:
    """Return a person without what is kept of the password."""
    return {
        "name": user.name,
        "shown": user.shown,
        "grants": written(user.grants),
        "is_disabled": user.is_disabled,
        "has_password": user.password_hash is not None,
        "created_at": user.created_at,
    }


def token_json(token: Token) -> Json:
    """Return a token without what is kept of its text."""
    return {
        "token_id": token.token_id,
        "name": token.name,
        "owner": token.owner,
        "grants": written(token.grants),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "used_at": token.used_at,
    }


def entry_json(entry: Entry) -> Json:
    """Return a line of the audit log."""
    act = entry.act
    return {
        "seq": entry.seq,
        "at": act.at,
        "who": act.who,
        "action": act.action,
        "target": act.target,
        "source": act.source,
        "result": act.result,
        "detail": dict(act.detail),
        "digest": entry.digest,
    }
