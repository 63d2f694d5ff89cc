"""``calve permits``: how many steps of a tag may run at once."""

from dataclasses import asdict

import click

from calve.cli.output import print_json, print_table
from calve.cli.state import State, json_option
from calve.errors import RequestInvalid


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
    with state.workplace() as workplace:
        found = workplace.engine.state.tag_permits()
    if state.json:
        print_json([asdict(permit) for permit in found])
    else:
        print_table(("tag", "at once", "now"), [(permit.tag, permit.max_allowed, permit.held) for permit in found])


@permits.command(name="set")
@click.argument("tag")
@click.argument("number", type=int)
@json_option
@click.pass_obj
def set_permit(state: State, tag: str, number: int) -> None:
    """Let at most NUMBER steps with TAG run at once; 0 lets none."""
    with state.workplace() as workplace:
        workplace.engine.limit_tag(tag, number)
    _tell(state, tag, number)


@permits.command(name="delete")
@click.argument("tag")
@json_option
@click.pass_obj
def delete_permit(state: State, tag: str) -> None:
    """Lift the limit of TAG."""
    with state.workplace() as workplace:
        if not workplace.engine.state.delete_tag_permit(tag):
            raise RequestInvalid(f"The tag {tag} has no limit.")
    _tell(state, tag, None)


def _tell(state: State, tag: str, number: int | None) -> None:
    if state.json:
        print_json({"tag": tag, "max_allowed": number})
    else:
        click.echo(f"{tag}: no limit" if number is None else f"{tag}: at most {number} at once")
