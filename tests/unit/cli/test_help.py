"""What --help of every command looks like."""

import click
import pytest

from calve.cli import entry


@pytest.mark.parametrize("name", entry.COMMANDS)
def test_examples_stand_in_lines_of_their_own(name: str) -> None:
    """Those of the command, and of the commands below it."""
    command = entry.calve.get_command(click.Context(entry.calve), name)
    assert command is not None
    below = list(command.commands.values()) if isinstance(command, click.Group) else []
    for each in (command, *below):
        assert "\\b" not in each.get_help(click.Context(each))
