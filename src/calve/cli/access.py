"""``calve user``, ``calve token`` and ``calve audit``: who may use the server, and what they did."""

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from calve.cli.hidden import read_hidden
from calve.cli.output import moment, print_json, print_table
from calve.cli.state import State, json_option
from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calve.access import Act, By, Office, Token

_GRANT = "What may be done: viewer, runner, editor or admin; with @NAMESPACE, there and below it only. Repeatable."


@contextmanager
def _office(state: State) -> "Iterator[tuple[Office, By]]":
    from calve.access import LOOPBACK, By, Principal
    from calve.app import office_on

    with state.workplace() as workplace:
        yield office_on(workplace.store), By(Principal(state.user, LOOPBACK.kind, LOOPBACK.grants), "cli")


@click.group()
def user() -> None:
    r"""Keep the people who may sign in at the server.

    \b
      calve user add ann --grant editor@sales
      calve user list
      calve user password ann
      calve user disable ann
    """


@user.command(name="add")
@click.argument("name")
@click.option("-g", "--grant", "grants", multiple=True, metavar="ROLE[@NAMESPACE]", help=_GRANT)
@json_option
@click.pass_obj
def add_user(state: State, name: str, grants: tuple[str, ...]) -> None:
    """Add a person; the password is asked for, or read from standard input."""
    from calve.access import parse_grants

    parsed = parse_grants(grants)
    with _office(state) as (office, by):
        office.add_user(name, read_hidden("Password", confirm=True), parsed, by)
    _tell(state, {"name": name, "grants": list(grants)}, f"{name} can sign in now.")


@user.command(name="list")
@json_option
@click.pass_obj
def list_users(state: State) -> None:
    """List all people, and what they may do."""
    from calve.access import written

    with _office(state) as (office, _):
        found = office.state.users()
    if state.json:
        print_json(
            [
                {"name": one.name, "shown": one.shown, "grants": written(one.grants), "is_disabled": one.is_disabled}
                for one in found
            ]
        )
    elif not found:
        click.echo("There are none. To add one: calve user add NAME --grant ROLE", err=True)
    else:
        rows = [(one.name, " ".join(written(one.grants)), "disabled" if one.is_disabled else "") for one in found]
        print_table(("user", "may", ""), rows)


@user.command(name="password")
@click.argument("name")
@json_option
@click.pass_obj
def set_password(state: State, name: str) -> None:
    """Give a person another password; all sessions of that person end."""
    with _office(state) as (office, by):
        office.set_password(name, read_hidden("New password", confirm=True), by)
    _tell(state, {"name": name}, f"{name} has another password; all sessions have ended.")


@user.command(name="grant")
@click.argument("name")
@click.argument("grants", nargs=-1)
@json_option
@click.pass_obj
def set_grants(state: State, name: str, grants: tuple[str, ...]) -> None:
    """Let a person do exactly this from now on: ROLE or ROLE@NAMESPACE; nothing, if none is given."""
    from calve.access import parse_grants

    with _office(state) as (office, by):
        office.set_grants(name, parse_grants(grants), by)
    _tell(state, {"name": name, "grants": list(grants)}, f"{name} may: {' '.join(grants) or 'nothing'}")


@user.command(name="disable")
@click.argument("name")
@json_option
@click.pass_obj
def disable_user(state: State, name: str) -> None:
    """Let a person in no more: sessions end, and tokens of that person open nothing."""
    with _office(state) as (office, by):
        office.disable(name, by)
    _tell(state, {"name": name, "is_disabled": True}, f"{name} is let in no more.")


@user.command(name="enable")
@click.argument("name")
@json_option
@click.pass_obj
def enable_user(state: State, name: str) -> None:
    """Let a person in again who was disabled."""
    with _office(state) as (office, by):
        office.disable(name, by, is_disabled=False)
    _tell(state, {"name": name, "is_disabled": False}, f"{name} is let in again.")


@click.group()
def token() -> None:
    r"""Keep the tokens that programs use the server with.

    \b
      calve token create ci --grant runner@sales --expires 90d
      calve token list
      calve token revoke 3f9a0c1b2d4e
    """


@token.command(name="create")
@click.argument("name")
@click.option("-g", "--grant", "grants", multiple=True, required=True, metavar="ROLE[@NAMESPACE]", help=_GRANT)
@click.option("--expires", default="90d", metavar="DURATION", help="After how long it opens nothing: 12h, 90d, never.")
@json_option
@click.pass_obj
def create_token(state: State, name: str, grants: tuple[str, ...], expires: str) -> None:
    """Make a token for NAME, and print it; this is the only time that it is shown."""
    from calve.access import parse_grants

    with _office(state) as (office, by):
        text, made = office.create_token(name, parse_grants(grants), by, life=_life(expires))
    if state.json:
        print_json({"token_id": made.token_id, "name": name, "token": text, "expires_at": made.expires_at})
    else:
        click.echo(text)
        click.echo(f"Keep it now: it is not shown again. Its id is {made.token_id}.", err=True)


@token.command(name="list")
@json_option
@click.pass_obj
def list_tokens(state: State) -> None:
    """List all tokens: what they may do, until when, and when they were used last."""
    from calve.access import written

    with _office(state) as (office, _):
        found = office.state.tokens()
    if state.json:
        print_json([_token(one) for one in found])
        return
    if not found:
        click.echo("There are none. To make one: calve token create NAME --grant ROLE", err=True)
        return
    rows = [
        (one.token_id, one.name, " ".join(written(one.grants)), moment(one.expires_at), moment(one.used_at), _end(one))
        for one in found
    ]
    print_table(("id", "for", "may", "expires", "last used", ""), rows)


def _token(token: "Token") -> dict[str, Any]:
    from calve.access import written

    return {
        "token_id": token.token_id,
        "name": token.name,
        "owner": token.owner,
        "grants": written(token.grants),
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "used_at": token.used_at,
    }


def _end(token: "Token") -> str:
    return "" if token.revoked_at is None else "revoked"


@token.command(name="revoke")
@click.argument("token_id")
@json_option
@click.pass_obj
def revoke_token(state: State, token_id: str) -> None:
    """Let a token open nothing any more, at once."""
    with _office(state) as (office, by):
        office.revoke_token(token_id, by)
    _tell(state, {"token_id": token_id}, f"{token_id} opens nothing any more.")


@click.group()
def audit() -> None:
    r"""Show who did what, and whether the log is whole.

    \b
      calve audit list -n 50
      calve audit verify
    """


@audit.command(name="list")
@click.option("-n", "--lines", default=20, type=click.IntRange(1, 10_000), help="How many lines; the newest first.")
@json_option
@click.pass_obj
def list_acts(state: State, lines: int) -> None:
    """Show the newest lines: who did what, when, from where, and what came of it."""
    with _office(state) as (office, _):
        found = office.state.newest(lines)
    if state.json:
        print_json([{"seq": one.seq, "digest": one.digest, **_act(one.act)} for one in found])
    else:
        rows = [
            (one.seq, moment(one.act.at), one.act.who, one.act.action, one.act.target, one.act.source, one.act.result)
            for one in found
        ]
        print_table(("line", "at", "who", "what", "of", "from", "result"), rows)


@audit.command(name="verify")
@click.option("--head", metavar="DIGEST", help="A digest that was noted before: is that line still there?")
@json_option
@click.pass_obj
def verify_audit(state: State, head: str | None) -> int:
    """Read the whole log, and say whether a line was changed or taken out; print the digest of its end.

    Keep that digest elsewhere, and give it with --head the next time: so you see whether the end was cut off.
    """
    from calve.access import verify

    with _office(state) as (office, _):
        verdict = verify(office.state.entries(), head)
    if state.json:
        print_json(
            {"is_whole": verdict.is_whole, "lines": verdict.lines, "head": verdict.head, "problem": verdict.problem}
        )
    elif verdict.is_whole:
        click.echo(f"The log is whole: {verdict.lines} lines. Its head is {verdict.head}")
    else:
        click.echo(f"The log was changed: {verdict.problem or 'the given digest is not in it'}.")
    return 0 if verdict.is_whole else 1


def _act(act: "Act") -> dict[str, Any]:
    return asdict(act)


def _life(text: str) -> int | None:
    from calve.settings import parse_duration

    if text == "never":
        return None
    try:
        return int(parse_duration(text).total_seconds() * 1_000)
    except ValueError as error:
        raise RequestInvalid(str(error)) from error


def _tell(state: State, document: dict[str, Any], text: str) -> None:
    if state.json:
        print_json(document)
    else:
        click.echo(text)
