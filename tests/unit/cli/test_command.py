"""How commands follow from operations."""

import json
from pathlib import Path

import click
import pytest

from calve.cli import entry
from calve.cli.command import OperationCommand, argument, command, option, performs
from calve.cli.session import Document
from calve.cli.state import State


def ignore(found: object) -> None:
    """Print nothing."""


def parameter(made: click.Command, name: str) -> click.Parameter:
    """Return a parameter of a command by the name of its operation's."""
    return next(one for one in made.params if one.name == name)


def help_of(made: click.Command) -> str:
    """Return what ``--help`` prints."""
    return made.get_help(click.Context(made))


@pytest.mark.parametrize("name", entry.COMMANDS)
def test_a_command_names_what_its_operation_takes(name: str) -> None:
    """Otherwise its parameters cannot be derived; it has ``--json`` in any case."""
    made = entry.calve.get_command(click.Context(entry.calve), name)
    assert made is not None
    below = list(made.commands.values()) if isinstance(made, click.Group) else []
    for one in (made, *below):
        if isinstance(one, OperationCommand):
            assert "--json" in one.params[-1].opts


def test_what_is_required_and_positional_is_an_argument() -> None:
    """WORKFLOW and INSTANCE, without the _id that programs have."""
    made = performs("Breakpoints.stop_step")(ignore)
    arguments = [one.make_metavar(click.Context(made)) for one in made.params if isinstance(one, click.Argument)]
    assert arguments == ["WORKFLOW", "INSTANCE", "STEP"]


def test_an_option_is_documented_where_the_operation_is() -> None:
    """Its text, its choices, its limits and its default."""
    made = performs("Captures.plan_capture", consumer=option("-c"))(ignore)
    text = " ".join(help_of(made).split())
    assert "-c, --consumer TEXT The consumer, for example a workflow; the checkpoint belongs to it. [required]" in text
    assert "--on-gap [fail|upserts|full]" in text
    assert "[default: fail]" in text
    assert "--max-files INTEGER RANGE Maximum number of files to capture from each table. [x>=1]" in text


def test_a_list_is_an_option_that_can_be_repeated() -> None:
    """And its help says so; other options that it names are spelt as options."""
    made = performs("Starts.restart_instance")(ignore)
    keep = parameter(made, "keep")
    assert keep.multiple
    assert isinstance(keep, click.Option)
    assert keep.help is not None
    assert keep.help.startswith("With --latest: keep the results")
    assert keep.help.endswith(" Repeatable.")


def test_what_cannot_be_typed_has_no_option() -> None:
    """An object in a body is left out, unless a command spells it."""
    made = performs("Starts.start_workflow")(ignore)
    assert "run_params" not in {one.name for one in made.params}
    made = performs("Starts.start_workflow", run_params=argument(type=str, nargs=-1))(ignore)
    assert "run_params" in {one.name for one in made.params}


def test_a_value_beside_the_operation_is_no_option() -> None:
    """The operation always receives it, and nobody can give another one."""
    made = performs("Access.change_user", "disable", password=None, grants=None, is_disabled=True)(ignore)
    assert [one.name for one in made.params] == ["name", "json"]


def test_a_list_of_pages_has_a_limit_if_the_command_wants_one() -> None:
    """Otherwise it prints the whole list."""
    assert "limit" not in {one.name for one in performs("Captures.list_lag")(ignore).params}
    assert parameter(performs("Signals.list_signals", limit=20)(ignore), "limit").default == 20


def test_a_misspelt_parameter_is_refused() -> None:
    """The operation is named, and what it does not take."""
    made = performs("Captures.list_lag", consummer=option("-c"))(ignore)
    with pytest.raises(TypeError, match=r"Captures.list_lag does not take consummer"):
        _ = made.params


def test_the_help_is_that_of_the_operation_if_there_is_no_other() -> None:
    """The first sentence stands in the list of a group, too."""

    @performs("Access.users", "list")
    def users(found: list[Document]) -> None:
        del found

    assert "List all users and their roles." in help_of(users)
    assert "Print nothing." in help_of(performs("Access.users")(ignore))


def test_a_command_may_do_the_work_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It takes the state, the operation's values, and options of its own."""

    @command("Captures.list_lag", consumer=option("-c"))
    @click.option("--loud", is_flag=True)
    def shout(state: State, consumer: str, *, loud: bool) -> None:
        del state
        click.echo(consumer.upper() if loud else consumer)

    shout.main(["-c", "daily", "--loud"], standalone_mode=False, obj=State(folder=tmp_path))
    assert capsys.readouterr().out == "DAILY\n"


def test_the_answer_is_printed_for_people_or_for_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The function prints it for people; --json prints it as it is."""
    monkeypatch.chdir(tmp_path)
    assert entry.run(["permits", "set", "gold", "4"]) == 0
    assert capsys.readouterr().out == "gold: at most 4 at once\n"
    assert entry.run(["permits", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["tag"], found["max_allowed"]) == ("gold", 4)
