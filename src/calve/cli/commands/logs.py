"""``calve logs``: the log of a step."""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from calve.cli.command import command, option
from calve.cli.output import print_json
from calve.cli.session import Document
from calve.cli.state import State

if TYPE_CHECKING:
    from calve.operations import Operations

_PAGE = 65_536
"""How many bytes of a log to read at once."""


@command(
    "Logs.get_logs",
    attempt=option(metavar="N", type=int),
    run=option(metavar="N", type=int),
    offset=option(metavar="N"),
    limit=option(metavar="N", type=click.IntRange(min=1)),
    tail=option(metavar="N"),
    find=option(metavar="TEXT"),
    ignore_case=option("-i"),
    follow=option("-f"),
)
def logs(
    state: State,
    /,
    workflow_id: str,
    instance_id: int,
    step_id: str,
    attempt: int | None,
    run: int | None,
    **options: Any,
) -> None:
    r"""Print the log of a step.

    \b
      calve logs demo.pipeline 3 load -f
      calve logs demo.pipeline 3 load --tail 100
      calve logs demo.pipeline 3 load --find error -i
      calve logs demo.pipeline 3 load --offset 1000000 --limit 5000
      calve logs demo.pipeline 3 loop/7/load --attempt 1
      calve logs demo.pipeline 3 load --run 1

    Of a long log, only the first and the last megabytes are kept, with a line that says how much is missing between
    them; to keep whole logs, see logs.location in the settings. Offsets count all bytes, including missing ones.
    """
    _check_options(options)
    which = workflow_id, instance_id, step_id
    with state.operations() as operations:
        read = _attempt(operations, which, attempt, run)
        place = {"attempt": read["step_attempt_id"], "run": run}
        if options["find"] is not None:
            place |= {"offset": options["offset"], "limit": options["limit"]}
            found = operations.find_in_log(*which, options["find"], ignore_case=options["ignore_case"], **place)
            _print_found(state, found)
            return
        text = ""
        for piece in _pieces(operations, which, place, options):
            if state.json:
                text += piece
            else:
                text = piece or text
                click.echo(piece, nl=False)
        if state.json:
            print_json({**_attempt(operations, which, place["attempt"], run), "log": text})
        elif not text:
            click.echo(f"{step_id} has written nothing. {read.get('message', '')}".rstrip(), err=True)
        elif not text.endswith("\n"):
            click.echo()


def _check_options(options: Mapping[str, Any]) -> None:
    is_part = options["offset"] is not None or options["limit"] is not None
    if options["tail"] is not None and (is_part or options["find"] is not None):
        raise click.UsageError("--tail cannot be combined with --offset, --limit or --find.")
    if options["follow"] and (options["limit"] is not None or options["find"] is not None):
        raise click.UsageError("--follow cannot be combined with --limit or --find.")


def _attempt(
    operations: "Operations", which: tuple[str, int, str], attempt_id: int | None, run_id: int | None
) -> Document:
    """Return an attempt of a step, by default the newest."""
    if attempt_id is None and run_id is None:
        return operations.step(*which)
    return operations.attempt(*which, attempt_id or "latest", run_id=run_id or "latest")


def _pieces(
    operations: "Operations", which: tuple[str, int, str], read: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the part of a log that the options select."""
    if options["follow"] or all(options[name] is None for name in ("offset", "limit", "tail")):
        place: dict[str, Any] = {**read, "offset": options["offset"], "tail": options["tail"]}
        yield from operations.logs(*which, is_followed=options["follow"], **place)
        return
    from calve.engine import LogPage

    part: dict[str, Any] = {"offset": options["offset"], "tail": options["tail"]}
    left = options["limit"] or sys.maxsize
    while left > 0:
        part |= {**read, "limit": None if part.get("tail") else min(_PAGE, left)}
        page = LogPage(**operations.log_page(*which, **part))
        yield page.shown()
        if page.is_last:
            return
        part, left = {"offset": page.next_offset}, left - (page.next_offset - page.offset)


def _print_found(state: State, found: Document) -> None:
    if state.json:
        print_json(found)
        return
    for match in found["matches"]:
        click.echo(f"{match['line'] or '?'}: {match['text']}")
    if found["next_offset"] is not None:
        click.echo(f"To search the rest: --offset {found['next_offset']}", err=True)
    elif not found["matches"]:
        click.echo("No line contains that text.", err=True)
    if found["left_out"]:
        click.echo(f"{found['left_out']:,} bytes of the log are not kept, and were not searched.", err=True)
