"""Texts for tests of the forms, and what becomes of them."""

from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from calve.definition.document import Node
from calve.definition.forms import canonical
from calve.definition.problems import Problems
from calve.definition.syntax import read

_CONFIGS = {
    "Spark": ("spark", frozenset({"script", "file", "conf", "name"})),
    "IpCapture": ("ip_capture", frozenset({"source_tables", "capture_mode", "data_operations"})),
    "IpCommit": ("ip_commit", frozenset({"capture_step"})),
    "ICDC": ("icdc", frozenset({"source_table", "sourceTable", "target_table", "targetTable", "mode"})),
}
_TEMPLATES = {("etl", None): "Spark", ("etl", "2"): "NoOp"}


class FewTypes:
    """Five step types and a job template."""

    def resolve(self, name: str) -> str | None:
        """Return the spelling of a type."""
        return {known.casefold(): known for known in [*_CONFIGS, "NoOp"]}.get(name.casefold())

    def template(self, name: str, version: str | None) -> str | None:
        """Return the type behind a template."""
        return _TEMPLATES.get((name, version))

    def config(self, type_name: str) -> tuple[str, frozenset[str]] | None:
        """Return the config map of a type."""
        return _CONFIGS.get(type_name)


@dataclass(frozen=True, slots=True)
class Written:
    """What a text became, and what was noticed."""

    node: Node | None
    problems: Problems

    @property
    def plain(self) -> Any:
        """The definition without places, if nothing is wrong with it."""
        assert not self.problems.found
        return self.node.plain() if self.node is not None else None

    @property
    def workflow(self) -> Any:
        """The workflow."""
        return self.plain["workflow"]

    @property
    def steps(self) -> Any:
        """The steps."""
        return self.workflow["steps"]

    @property
    def said(self) -> list[tuple[str, str]]:
        """The code and the message of all problems, in the order of the text."""
        return [(problem.code, problem.message) for problem in self.problems]

    @property
    def codes(self) -> list[str]:
        """The codes of all problems, in the order of the text."""
        return [problem.code for problem in self.problems]


def written(text: str) -> Written:
    """Return what becomes of a text."""
    problems = Problems()
    document = read(dedent(text), name="w.yaml", problems=problems)
    assert document is not None, problems.found
    return Written(canonical(document, problems, FewTypes()), problems)


def edges(steps: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Return the edges between steps, with their conditions."""
    inner = [next(iter(step.values())) for step in steps]
    return {
        (step["id"], target): condition
        for step in inner
        for target, condition in step.get("transition", {}).get("successors", {}).items()
    }
