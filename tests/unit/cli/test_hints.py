"""Every command that a message offers exists, and takes what the message gives it."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import calve
from calve.cli.entry import COMMANDS, calve as program
from calve.cli.state import State

ROOT = Path(calve.__file__).parent
NOT_COMMANDS = {
    "answers",
    "does",
    "has",
    "in",
    "is",
    "keeps",
    "knows",
    "makes",
    "refuses",
    "resolves",
    "started",
    "tries",
    "wrote",
}
"""What follows the name of the product in sentences about it."""
FILLED = {
    "instance": "flow 1",
    "keep": "--keep step",
    "options": "--latest ",
    "place": "flow 1 step",
    "which": "flow 1",
}
"""What stands for values that are more than one word."""


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module but for its docstrings; a value that is put in stands there as 1."""
    bodies = [body for node in ast.walk(tree) if isinstance(body := getattr(node, "body", None), list)]
    apart = {id(line.value) for body in bodies for line in body if isinstance(line, ast.Expr)}
    apart |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in apart:
            continue
        match node:
            case ast.Constant(value=str(text)):
                yield node.lineno, text
            case ast.JoinedStr(values=parts):
                yield node.lineno, "".join(_part(part) for part in parts)
            case _:
                pass


def _part(part: ast.expr) -> str:
    match part:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Name(id=name)):
            return FILLED.get(name, "1")
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="name_of"))):
            return "flow 1"
        case _:
            return "1"


def commands(text: str) -> Iterator[str]:
    """Yield the commands in a text: in backquotes, or up to where the sentence or the clause ends."""
    for found in re.finditer(r"`calve ([^`]+)`|(?<![\w`./>-])(?<!\ba )calve ([a-z][^\n`;()]*)", text):
        quoted, plain = found.groups()
        command = (
            quoted or re.split(r"[.,:?](?:\s|$)| and | or | to | lists | shows | tells | make | running ", plain)[0]
        )
        if command.split()[0] not in NOT_COMMANDS:
            yield command.strip()


HINTS = [
    (f"{file.relative_to(ROOT)}:{line}", command)
    for file in sorted(ROOT.rglob("*.py"))
    for line, text in texts(ast.parse(file.read_text(encoding="utf-8")))
    for command in commands(text)
    if (file.name, command) != ("sql.py", "sql")  # what Spark calls the session
]


def parsed(words: list[str]) -> None:
    """Parse a command line as ``calve`` would, and run nothing."""
    context: click.Context = program.make_context("calve", words, obj=State())
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None, f"there is no command {name}"
        context = command.make_context(name, rest, parent=context)


def test_there_are_hints() -> None:
    """Else nothing below would be tested."""
    assert len(HINTS) > 30
    assert {"restart", "status", "logs", "commit", "abandon", "checkpoint"} <= {
        command.split()[0] for _, command in HINTS
    }


@pytest.mark.parametrize(("place", "command"), HINTS, ids=[f"{place} {command}" for place, command in HINTS])
def test_a_hint_can_be_followed(place: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is there, and so are its options; no argument that it needs is missing."""
    assert place
    monkeypatch.chdir(tmp_path)
    Path("FILE").touch()
    words = shlex.split(command)
    assert "…" not in words, "a reader cannot follow that"
    assert words[0] in COMMANDS
    parsed(words)
