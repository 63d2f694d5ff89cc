"""``calve secret``: the encrypted table of secrets, which can be written but not read."""

import click

from calve.cli.command import performs
from calve.cli.options import read_hidden
from calve.cli.output import print_table
from calve.cli.session import Document
from calve.cli.state import State


@click.group()
def secret() -> None:
    r"""Manage secrets in an encrypted table of the state database.

    A param of type SECRET refers to one by its name; only running steps receive its text, and it is never shown. A name
    without a dot is for all workflows, sales.eu.password for those in sales.eu and below.

    \b
      calve secret set warehouse_password
      calve secret set warehouse_password < file
      calve secret list
      calve secret delete warehouse_password
    """


@performs("Access.set_secret", "set", below=secret, text=lambda: read_hidden("Text", confirm=True))
def _set(stored: Document) -> None:
    """Store a secret; its text is prompted for, or read from standard input. The key is created if missing."""
    settings = click.get_current_context().ensure_object(State).settings
    key = f" Workers need the key: {settings.secret_store.key_file}" if settings.client.url is None else ""
    click.echo(f"{stored['name']} is stored.{key}")


@performs("Access.secrets", "list", below=secret)
def _list(found: list[Document]) -> None:
    """List the names of all secrets in the table, never their texts."""
    print_table(("secret", "set by"), [(one["name"], one["changed_by"]) for one in found])


@performs("Access.delete_secret", "delete", below=secret)
def _delete(deleted: Document) -> None:
    """Delete a secret."""
    click.echo(f"{deleted['name']} is deleted.")
