"""``calve doctor --prove``: checks of a catalog in a scratch namespace, and a report of them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from calve.cli.output import duration, print_json
from calve.cli.state import State

if TYPE_CHECKING:
    from calve.conformance import CheckResult

_MARKS = {
    "passed": ("✓", "green"),
    "failed": ("✗", "red"),
    "not supported": ("-", "yellow"),
    "skipped": ("-", "yellow"),
}


def prove_catalog(
    state: State, catalog: str, namespace: str | None, file: Path | None, *, uses_spark: bool, keeps: bool
) -> int:
    """Prove a catalog, print the report, and return the exit code."""
    state.check_here()
    from calve.conformance import ProofOptions, proof_document, proof_markdown, prove

    options = ProofOptions(namespace, uses_spark=uses_spark, keeps=keeps)
    tell, say = (_tell_problem, lambda _: None) if state.json else (_tell, _say)
    proof = prove(state.settings, catalog, options, tell=tell, say=say)
    document = proof_document(proof, state.settings)
    text = proof_markdown(document)
    if state.json:
        print_json(document)
    else:
        _print(text)
    if file is not None:
        file.write_text(text, encoding="utf-8")
        if not state.json:
            click.echo(f"Report: {file}", err=True)
    return int(proof.has_failed)


def _say(what: str) -> None:
    click.echo(f"  {what} …", err=True)


def _tell(result: "CheckResult") -> None:
    """Print a line for a result."""
    mark, colour = _MARKS[result.outcome]
    outcome = "" if result.outcome == "passed" else f"{result.outcome}: "
    took = f"  ({duration(result.seconds)})" if result.seconds else ""
    click.echo(f"{click.style(mark, fg=colour)} {result.check:<14}  {outcome}{result.detail}{took}", err=True)
    if result.remedy:
        click.echo(f"{' ' * 18}→ {result.remedy}", err=True)


def _tell_problem(result: "CheckResult") -> None:
    """Print what is left of a proof, which Ctrl-C would keep out of the report."""
    if result.check == "cleanup" and result.outcome == "failed":
        _tell(result)


def _print(text: str) -> None:
    """Print Markdown: drawn on a terminal, as it is elsewhere."""
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))
