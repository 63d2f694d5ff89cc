"""Generate the reference page of the commands from their help; text below a line of notes is written by hand.

From the root of the repository: python scripts/commands.py [--check]
"""

import re
import sys
from collections.abc import Iterator
from textwrap import dedent

import click
from generated import REFERENCE, write

from calve.cli.entry import calve

PAGE = REFERENCE / "cli.md"
NOTES = "<!-- notes -->"
"""Begins what a section has besides the help of its command."""
_COMMON = {"--json", "--help", "-h"}
"""Options that every command has; the first section describes them."""


def page(before: str) -> str:
    """Return the page for today's commands, with the first section and the notes of the page before."""
    first, *sections = re.split(r"^(?=## `calve)", before, flags=re.MULTILINE)
    notes = {_name(one): one.partition(f"{NOTES}\n")[2].strip() for one in sections}
    written = [_section(name, command, notes.get(name, "")) for name, command in commands()]
    return first + "\n".join(written)


def commands(group: click.Group = calve, prefix: str = "calve") -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its full name, a group before its subcommands."""
    context = click.Context(group)
    for name in group.list_commands(context):
        if (command := group.get_command(context, name)) is None:
            continue
        yield f"{prefix} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix} {name}")


def _name(section: str) -> str:
    found = re.match(r"## `([^`]+)`", section)
    return found[1] if found else ""


def _section(name: str, command: click.Command, notes: str) -> str:
    usage = " ".join([name, *command.collect_usage_pieces(click.Context(command))])
    parts = [f"## `{name}`", f"```\n{usage}\n```", *_help(command)]
    if rows := [_row(one) for one in command.params if isinstance(one, click.Option) and not _COMMON & set(one.opts)]:
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    return "\n\n".join([*parts, *([f"{NOTES}\n{notes}"] if notes else [])]) + "\n"


def _help(command: click.Command) -> Iterator[str]:
    """Yield the paragraphs of the help as Markdown: examples are code."""
    for paragraph in re.split(r"\n\s*\n", dedent(command.help or "").strip()):
        if paragraph.lstrip().startswith("\b"):
            yield f"```\n{dedent(paragraph.lstrip().removeprefix(chr(8)).strip(chr(10)))}\n```"
        else:
            yield _escaped(" ".join(paragraph.split()))


def _row(option: click.Option) -> str:
    context = click.Context(click.Command("calve"))
    written, _ = option.get_help_record(context) or ("", "")
    default = option.get_default(context)
    shown = f" Default: `{default}`." if option.show_default and default is not None else ""
    spelled = re.sub(r"(INTEGER|FLOAT)( RANGE)?\b", "N", re.sub(r"\s+", " ", written))
    names = ", ".join(f"`{one}`" for one in spelled.split(", ")).replace("|", "\\|")
    return f"| {names} | {_escaped(option.help or '')}{shown} |".replace("${", "$\\{")


def _escaped(text: str) -> str:
    """Keep words with special characters of Markdown as they are."""
    code = re.sub(r"(?<![`\w])(<[a-z]+>[\w/.]*\w|[\w.]*\*[\w.]*|\$+\{\w*\}?)", r"`\1`", text)
    return code.replace("|", "\\|")


def main() -> int:
    """Write the page, or tell that it is out of date."""
    return write({PAGE: page(PAGE.read_text(encoding="utf-8"))}, "commands")


if __name__ == "__main__":
    sys.exit(main())
