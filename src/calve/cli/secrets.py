"""``calve secret``: the encrypted table of secrets, which can be written here, and not read."""

import secrets
from typing import TYPE_CHECKING

import click

from calve.cli.hidden import read_hidden
from calve.cli.output import print_json, print_table
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from calve.access import By


@click.group()
def secret() -> None:
    r"""Keep secrets in an encrypted table of the state database.

    A param of type SECRET names one; its text is given to steps where they run, and shown nowhere. A name without a
    dot is for all workflows, sales.eu.password for those in sales.eu and below.

    \b
      calve secret set warehouse_password
      calve secret set warehouse_password < file
      calve secret list
      calve secret delete warehouse_password
    """


@secret.command(name="set")
@click.argument("name")
@json_option
@click.pass_obj
def set_secret(state: State, name: str) -> None:
    """Keep a secret; its text is asked for, or read from standard input. The key is made where there is none."""
    from calve.app import now_ms, secret_table_on

    with state.workplace() as workplace:
        table = secret_table_on(workplace.store, workplace.settings, makes_key=True)
        table.put(name, read_hidden("Text", confirm=True), _by(state), now_ms(), secrets.token_bytes)
    if state.json:
        print_json({"name": name})
    else:
        click.echo(f"{name} is kept. Workers need the key: {state.settings.secret_store.key_file}")


@secret.command(name="list")
@json_option
@click.pass_obj
def list_secrets(state: State) -> None:
    """List the names of all secrets in the table; nothing shows their texts."""
    with state.workplace() as workplace:
        found = workplace.store.access.secrets()
    if state.json:
        print_json([{"name": one.name, "changed_at": one.changed_at, "changed_by": one.changed_by} for one in found])
    else:
        print_table(("secret", "set by"), [(one.name, one.changed_by) for one in found])


@secret.command(name="delete")
@click.argument("name")
@json_option
@click.pass_obj
def delete_secret(state: State, name: str) -> None:
    """Remove a secret from the table."""
    from calve.app import now_ms, secret_table_on

    with state.workplace() as workplace:
        secret_table_on(workplace.store, workplace.settings).delete(name, _by(state), now_ms())
    if state.json:
        print_json({"name": name})
    else:
        click.echo(f"{name} is gone.")


def _by(state: State) -> "By":
    from calve.access import LOOPBACK, By, Principal

    return By(Principal(state.user, LOOPBACK.kind, LOOPBACK.grants), "cli")
