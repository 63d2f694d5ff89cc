"""From a text to a definition: every check, all problems at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from calve.definition.checks import check_document
from calve.definition.document import Mark, Node
from calve.definition.dry_run import dry_run
from calve.definition.forms import canonical
from calve.definition.graph import check_graph
from calve.definition.model.workflow import Definition
from calve.definition.problems import Problem, Problems, TooManyProblems
from calve.definition.reading import read
from calve.definition.scripts import Scripts, inline
from calve.definition.templates import expand
from calve.definition.validating import validated
from calve.definition.vocabulary import Vocabulary
from calve.definition.walking import all_steps, entry
from calve.errors import DefinitionInvalid
from calve.expressions import system_millis


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a text gave: a definition if there was no error, and all that was noticed."""

    name: str
    definition: Definition | None
    problems: tuple[Problem, ...]

    def required(self) -> Definition:
        """Return the definition, or raise all errors at once."""
        if self.definition is not None:
            return self.definition
        problems = Problems(list(self.problems))
        problems.raise_if_any(self.name)
        raise DefinitionInvalid(f"{self.name} holds no definition")


def load(text: str | bytes, *, name: str, vocabulary: Vocabulary, scripts: Scripts | None = None) -> Loaded:
    """Read a definition in any of its forms, check all that can be checked, and try its params."""

    def read_and_check(problems: Problems) -> Definition | None:
        document = read(text, name=name, problems=problems)
        shaped = canonical(document, problems, vocabulary.types) if document is not None else None
        return checked(shaped, problems, vocabulary, scripts) if shaped is not None else None

    return _loaded(name, read_and_check)


def load_canonical(document: Mapping[str, Any], *, name: str, vocabulary: Vocabulary) -> Loaded:
    """Check a definition that a program made, in the canonical shape; it has no places but its paths."""
    placed = _placed(document, "")
    return _loaded(name, lambda problems: checked(placed, problems, vocabulary))


def _loaded(name: str, check: Callable[[Problems], Definition | None]) -> Loaded:
    problems = Problems()
    try:
        definition = check(problems)
    except TooManyProblems:
        definition = None
    return Loaded(name, definition if not problems.errors else None, tuple(problems))


def _placed(value: Any, path: str) -> Node:
    mark = Mark(1, 1)
    match value:
        case Mapping():
            found = {key: _placed(item, f"{path}.{key}" if path else key) for key, item in value.items()}
            return Node(found, mark, path)
        case list():
            return Node([_placed(item, f"{path}[{index}]") for index, item in enumerate(value)], mark, path)
        case _:
            return Node(value, mark, path)


def checked(
    document: Node, problems: Problems, vocabulary: Vocabulary, scripts: Scripts | None = None
) -> Definition | None:
    """Check a canonical document and return its definition, with its templates expanded and its scripts read."""
    document = expand(document, vocabulary.templates, problems)
    if scripts is not None:
        document = inline(document, scripts, problems)
    definition = validated(document, problems)
    workflow = entry(document, "workflow")
    steps = list(all_steps(workflow))
    for kind, step in steps:
        vocabulary.types.check(step, problems, kind=kind)
    vocabulary.types.check_references([step for _, step in steps], problems)
    check_document(document, problems)
    check_graph(workflow, problems)
    if definition is not None and not problems.errors:
        dry_run(definition, document, vocabulary, problems, system_millis)
    return definition
