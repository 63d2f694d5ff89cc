"""The documentation is complete: what the code offers is described, and what is linked is there."""

import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from calve import failpoints
from calve.capture import CaptureReport, Checkpoint, Collected, DeleteKeys, Lag, StoredCheckpoint, TableReport
from calve.capture.model import SnapshotStep
from calve.capture.ranges import Range
from calve.cli.commands.doctor import CHECKS, Finding
from calve.cli.entry import COMMANDS, calve as cli
from calve.conformance import CHECKS as PROOFS, CLEANUP, CheckResult, Leftover
from calve.definition import installed, load
from calve.errors import CalveError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"))]
REPORTS = (
    CaptureReport,
    TableReport,
    DeleteKeys,
    SnapshotStep,
    Range,
    Lag,
    Collected,
    Checkpoint,
    StoredCheckpoint,
    Finding,
    CheckResult,
    Leftover,
)
INTERNAL = {(Range, "kind"), (StoredCheckpoint, "checkpoint")}
"""Fields that ``--json`` does not print by their name."""


def _read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def _commands(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, by its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, f"{prefix} {name}")
        elif command is not None:
            yield f"{prefix} {name}", command


def _options(command: click.Command) -> set[str]:
    options = [option for option in command.params if isinstance(option, click.Option)]
    return {name for option in options for name in (*option.opts, *option.secondary_opts)}


def _section(page: str, name: str) -> str:
    """Return the part of a page whose heading has a name in backticks; nothing where there is none."""
    parts = re.split(r"^(## .*)$", page, flags=re.MULTILINE)
    found = (body for heading, body in zip(parts[1::2], parts[2::2], strict=True) if f"`{name}`" in heading)
    return next(found, "")


def _mentions(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def _errors(root: type[CalveError] = CalveError) -> Iterator[type[CalveError]]:
    yield root
    for child in root.__subclasses__():
        yield from _errors(child)


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ +(.*)$", text, flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


COMMANDS_BY_NAME = dict(_commands(cli, "calve"))


def test_the_reference_of_commands_is_their_help() -> None:
    """After a change of a command: make commands."""
    made = subprocess.run([sys.executable, "scripts/commands.py", "--check"], cwd=ROOT, check=False)
    assert made.returncode == 0


@pytest.mark.parametrize("name", COMMANDS_BY_NAME)
def test_every_command_and_option_is_described(name: str) -> None:
    """The section of a command in cli.md names each of its options, or the table of common ones does."""
    page = _read("reference/cli.md")
    section = _section(page, name)
    assert section, f"cli.md has no section for {name}"
    common = page.partition("## Every command")[2].partition("\n## ")[0]
    missing = [option for option in _options(COMMANDS_BY_NAME[name]) if not _mentions(section + common, option)]
    assert not missing


def test_no_option_is_described_that_does_not_exist() -> None:
    """Every option that cli.md names belongs to some command."""
    known = {"--help", "--version"} | _options(cli)
    known |= {option for command in COMMANDS_BY_NAME.values() for option in _options(command)}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", _read("reference/cli.md")))
    assert named <= known


def test_the_readme_lists_every_command() -> None:
    """The table of the README has every top-level command."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if not _mentions(readme, f"calve {name}")] == []


def test_every_check_of_doctor_is_described() -> None:
    """cli.md names every check that ``calve doctor --only`` takes."""
    section = _section(_read("reference/cli.md"), "calve doctor")
    assert [check for check in CHECKS if f"`{check}`" not in section] == []


def test_every_check_of_a_proof_is_described() -> None:
    """The table of the page about proofs has each check in its order, and what it proves."""
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", _read("howto/prove-a-catalog.md"), flags=re.MULTILINE)
    assert rows == [(check.name, check.proves) for check in (*PROOFS, CLEANUP)]


@pytest.mark.parametrize("script", ["settings_docs", "ways"])
def test_generated_documentation_is_up_to_date(script: str) -> None:
    """The tables of settings: make settings-docs. The drawings of the architecture: make ways."""
    command = [sys.executable, f"scripts/{script}.py", "--check"]
    made = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")


def test_every_error_code_is_described() -> None:
    """errors.md has every code, also those of the command line itself, and the class that carries it."""
    page = _read("reference/errors.md")
    ours = [error for error in _errors() if error.__module__.startswith("calve.")]
    assert failpoints.FailpointReached in ours
    assert [code for code in (*(e.code for e in ours), "unexpected", "stopped") if f"`{code}`" not in page] == []
    public = [error.__name__ for error in ours if error.__module__ == "calve.errors"]
    assert [name for name in public if f"`{name}`" not in page] == []


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.__name__)
def test_every_key_of_the_json_is_described(report: Any) -> None:
    """json.md has every key that ``--json`` prints."""
    page = _read("reference/json.md")
    keys = [field.name for field in fields(report) if (report, field.name) not in INTERNAL]
    assert [key for key in keys if f"`{key}`" not in page] == []


def test_every_page_is_in_the_navigation() -> None:
    """mkdocs.yml names every page of the documentation once, and no other."""
    named = re.findall(r":\s+(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_docstrings_name_what_exists() -> None:
    """Such as the port that a module of the store implements."""
    named = {
        name
        for file in sorted((ROOT / "src").rglob("*.py"))
        for name in re.findall(r"``(calve(?:\.\w+)+)``", file.read_text(encoding="utf-8"))
    }
    assert {name for name in named if not _exists(name)} == {"calve.toml", "calve.step_runtimes", "calve.step_types"}


def _exists(name: str) -> bool:
    """Tell whether a dotted name is that of a module, or of something in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """A link to a file of the repository, and to a heading in it, resolves."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", _without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_file() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


def test_the_map_of_layers_is_the_contract() -> None:
    """The table in CONTRIBUTING has the layers of pyproject.toml, in their order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Layers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE)
    assert [re.findall(r"\w+", row) for row in rows] == [re.findall(r"\w+", layer) for layer in layers]


def test_decisions_are_short_and_of_one_form() -> None:
    """A decision record has its parts, and fits on a page."""
    for page in sorted((DOCS / "decisions").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        parts = ("**Status:**", "## Context", "## Decision", "## Consequences", "## Alternatives measured")
        assert [part for part in parts if part not in text] == [], page.name
        assert len(text.split()) <= 500, page.name


def _yaml_in(page: Path) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_the_examples_of_the_definitions_page_load() -> None:
    """The whole ones; a piece is put into a workflow first."""
    whole = "Workflow:\n  id: w\n  jobs:\n    - job: {id: a, type: NoOp}\n"
    for text in _yaml_in(DOCS / "reference" / "definitions.md"):
        complete = text if "id:" in text else f"{text}\n{whole}"
        load(complete.replace("script: …", "script: SELECT 1"), name="page", vocabulary=installed()).required()


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_every_whole_workflow_of_a_page_can_be_pushed(page: Path) -> None:
    """Without a problem or a warning."""
    for text in _yaml_in(page):
        if re.search(r"^Workflow:", text, flags=re.MULTILINE):
            assert load(text, name=page.name, vocabulary=installed()).problems == (), text


def test_every_warning_about_an_expression_is_documented() -> None:
    """By its code."""
    source = (ROOT / "src/calve/expressions/linter.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'_warning\(\s*"(\w+)"', source)) - {"undeclared_name"}
    assert len(codes) >= 6
    page = _read("reference/expressions.md")
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []
