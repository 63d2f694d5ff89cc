"""``calve permits``: how many steps of a tag may run at once."""

import click

from calve.cli.output import print_json, print_table
from calve.cli.state import State, json_option


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def permits(context: click.Context) -> None:
    r"""Show and set how many steps of a tag run at once.

    \b
      calve permits
      calve permits set warehouse 4
      calve permits delete warehouse
    """
    if context.invoked_subcommand is not None:
        return
    state: State = context.obj
    with state.desk() as desk:
        found = desk.permits()
    if state.json:
        print_json(found)
    else:
        rows = [(permit["tag"], permit["max_allowed"], permit.get("held")) for permit in found]
        print_table(("tag", "at once", "now"), rows)


@permits.command(name="set")
@click.argument("tag")
@click.argument("number", type=int)
@json_option
@click.pass_obj
def set_permit(state: State, tag: str, number: int) -> None:
    """Let at most NUMBER steps with TAG run at once; 0 lets none."""
    with state.desk() as desk:
        desk.limit_tag(tag, number)
    _tell(state, tag, number)


@permits.command(name="delete")
@click.argument("tag")
@json_option
@click.pass_obj
def delete_permit(state: State, tag: str) -> None:
    """Lift the limit of TAG."""
    with state.desk() as desk:
        desk.limit_tag(tag, None)
    _tell(state, tag, None)


def _tell(state: State, tag: str, number: int | None) -> None:
    if state.json:
        print_json({"tag": tag, "max_allowed": number})
    else:
        click.echo(f"{tag}: no limit" if number is None else f"{tag}: at most {number} at once")
