"""``calve permits``: how many steps with a tag may run at once."""

import click

from calve.cli.command import argument, command, performs
from calve.cli.output import print_json, print_table
from calve.cli.session import Document
from calve.cli.state import State
from calve.errors import RequestInvalid, WorkflowMissing


@performs("Permits.permits", is_group=True)
def permits(found: list[Document]) -> None:
    r"""Show and set how many steps with a tag run at once.

    \b
      calve permits
      calve permits set warehouse 4
      calve permits delete warehouse
    """
    rows = [(permit["tag"], permit["max_allowed"], permit.get("held")) for permit in found]
    print_table(("tag", "at once", "now"), rows)


@performs("Permits.limit_tag", "set", below=permits, max_allowed=argument(metavar="NUMBER"))
def _set(permit: Document) -> None:
    """Let at most NUMBER steps with TAG run at once; 0 lets none run."""
    click.echo(f"{permit['tag']}: at most {permit['max_allowed']} at once")


@command("Permits.unlimit_tag", "delete", below=permits)
def _delete(state: State, tag: str) -> None:
    """Remove the limit of TAG."""
    try:
        with state.topic("Permits") as permits:
            permits.unlimit_tag(tag)
    except WorkflowMissing as error:
        raise RequestInvalid(f"The tag {tag} has no limit.") from error
    if state.json:
        print_json({"tag": tag, "max_allowed": None})
    else:
        click.echo(f"{tag}: no limit")
