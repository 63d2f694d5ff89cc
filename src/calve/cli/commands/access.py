"""``calve user``, ``calve token`` and ``calve audit``: who may use the server, and what they did."""

import click

from calve.cli.command import argument, command, option, performs
from calve.cli.options import read_hidden
from calve.cli.output import moment, print_json, print_table
from calve.cli.session import Document
from calve.cli.state import State

_GRANT = option("-g", "--grant", metavar="ROLE[@NAMESPACE]")


def _first_password() -> str:
    """Prompt for the password of a new user, unless their roles are invalid."""
    from calve.access import parse_grants

    parse_grants(click.get_current_context().params["grants"])
    return read_hidden("Password", confirm=True)


@click.group()
def user() -> None:
    r"""Manage the users who may sign in to the server.

    \b
      calve user add ann --grant editor@sales
      calve user list
      calve user password ann
      calve user disable ann
    """


@performs("Access.add_user", "add", below=user, password=_first_password, grants=_GRANT)
def _add(added: Document) -> None:
    """Add a user; the password is prompted for, or read from standard input."""
    click.echo(f"{added['name']} can sign in now.")


@performs("Access.users", "list", below=user)
def _users(found: list[Document]) -> None:
    if not found:
        click.echo("There are no users. To add one: calve user add NAME --grant ROLE", err=True)
    else:
        rows = [(one["name"], " ".join(one["grants"]), "disabled" if one["is_disabled"] else "") for one in found]
        print_table(("user", "may", ""), rows)


@performs(
    "Access.change_user",
    "password",
    below=user,
    password=lambda: read_hidden("New password", confirm=True),
    grants=None,
    is_disabled=None,
)
def _password(changed: Document) -> None:
    """Change the password of a user; all their sessions end."""
    click.echo(f"The password of {changed['name']} is changed; all their sessions have ended.")


@command("Access.change_user", "grant", below=user, password=None, grants=argument(required=False), is_disabled=None)
def _grant(state: State, name: str, grants: tuple[str, ...]) -> None:
    """Replace the roles of a user: ROLE or ROLE@NAMESPACE; without any, they may do nothing."""
    with state.topic("Access") as access:
        changed = access.change_user(name, grants=list(grants))
    if state.json:
        print_json(changed)
    else:
        click.echo(f"{name} may: {' '.join(grants) or 'nothing'}")


@performs("Access.change_user", "disable", below=user, password=None, grants=None, is_disabled=True)
def _disable(changed: Document) -> None:
    """Disable a user: their sessions end, and their tokens are no longer accepted."""
    click.echo(f"{changed['name']} is disabled.")


@performs("Access.change_user", "enable", below=user, password=None, grants=None, is_disabled=False)
def _enable(changed: Document) -> None:
    """Enable a user who was disabled."""
    click.echo(f"{changed['name']} is enabled.")


@click.group()
def token() -> None:
    r"""Manage the tokens that programs use the server with.

    \b
      calve token create ci --grant runner@sales --expires 90d
      calve token list
      calve token revoke 3f9a0c1b2d4e
    """


@performs(
    "Access.create_token",
    "create",
    below=token,
    grants=_GRANT,
    expires_in=option("--expires", metavar="DURATION"),
)
def _create(made: Document) -> None:
    """Create a token for NAME, and print it; it is not shown again."""
    click.echo(made["token"])
    click.echo(f"Store it now: it is not shown again. Its id is {made['token_id']}.", err=True)


@performs("Access.tokens", "list", below=token)
def _tokens(found: list[Document]) -> None:
    """List all tokens: their roles, when they expire, and when they were last used."""
    if not found:
        click.echo("There are no tokens. To create one: calve token create NAME --grant ROLE", err=True)
    else:
        print_table(("id", "for", "may", "expires", "last used", ""), [_token_row(one) for one in found])


def _token_row(token: Document) -> tuple[str, ...]:
    times = moment(token["expires_at"]), moment(token["used_at"])
    state = "" if token["revoked_at"] is None else "revoked"
    return token["token_id"], token["name"], " ".join(token["grants"]), *times, state


@performs("Access.revoke_token", "revoke", below=token, token_id=argument(metavar="TOKEN_ID"))
def _revoke(_: Document, token_id: str) -> None:
    """Revoke a token immediately."""
    click.echo(f"{token_id} is revoked.")


@click.group()
def audit() -> None:
    r"""Show and verify the audit log.

    \b
      calve audit list -n 50
      calve audit verify
    """


@performs("Access.audit", "list", below=audit, limit=option("-n", "--lines", default=20))
def _list(found: list[Document]) -> None:
    names = ("who", "action", "target", "source", "result")
    rows = [(one["seq"], moment(one["at"]), *(one[name] for name in names)) for one in found]
    print_table(("line", "at", "who", "what", "of", "from", "result"), rows)


@command("Access.verify_audit", "verify", below=audit, head=option(metavar="DIGEST"))
def _verify(state: State, head: str | None) -> int:
    """Verify that no line of the log was changed or removed, and print the digest of its end.

    Keep that digest elsewhere, and pass it with --head the next time: that shows whether the end was cut off.
    """
    with state.topic("Access") as access:
        found = access.verify_audit(head)
    if state.json:
        print_json(found)
    elif found["is_whole"]:
        click.echo(f"The log is intact: {found['lines']} lines. Its head is {found['head']}")
    else:
        click.echo(f"The log was changed: {found['problem'] or 'it does not contain the given digest'}.")
    return 0 if found["is_whole"] else 1
