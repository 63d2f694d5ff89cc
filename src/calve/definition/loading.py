"""From a text to a definition: every check, all problems at once."""

import gc
from dataclasses import dataclass

from calve.definition.capture_order import check_capture_order
from calve.definition.checks import LOOPS, REQUEST_BYTES, check_document
from calve.definition.completing import complete
from calve.definition.document import Node
from calve.definition.dry_run import dry_run
from calve.definition.forms import canonical
from calve.definition.graph import check_graph
from calve.definition.model.workflow import Definition
from calve.definition.problems import Problem, Problems, TooManyProblems
from calve.definition.reading import read
from calve.definition.scripts import Scripts, StepFiles, inline
from calve.definition.templates import expand
from calve.definition.validating import validated
from calve.definition.vocabulary import Vocabulary
from calve.definition.walking import all_steps, entry
from calve.expressions import system_millis


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a text gave: a definition if there was no error, and all that was noticed."""

    name: str
    definition: Definition | None
    problems: tuple[Problem, ...]

    def required(self) -> Definition:
        """Return the definition, or raise all errors at once."""
        if self.definition is None:
            raise Problems(list(self.problems)).as_error(self.name)
        return self.definition


def load(
    text: str | bytes,
    *,
    name: str,
    vocabulary: Vocabulary,
    scripts: Scripts | None = None,
    files: StepFiles | None = None,
) -> Loaded:
    """Read a definition in any of its forms, check all that can be checked, and try its params.

    Args:
        text: the definition.
        name: what messages call it.
        vocabulary: the words that it may use.
        scripts: the files that ``$S3{path}`` stands for; left as they are, unless given.
        files: the files that steps read when they run; not checked, unless given.
    """
    problems = Problems()
    definition = None
    # A large definition makes so many values that collecting garbage among them takes a quarter of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        document = read(text, name=name, problems=problems, most=REQUEST_BYTES)
        shaped = canonical(document, problems, vocabulary.types) if document is not None else None
        if shaped is not None:
            definition = checked(shaped, problems, vocabulary, scripts, files)
    except TooManyProblems:
        pass
    finally:
        (gc.enable if collects else gc.disable)()
    return Loaded(name, definition if not problems.errors else None, tuple(problems))


def checked(
    document: Node,
    problems: Problems,
    vocabulary: Vocabulary,
    scripts: Scripts | None = None,
    files: StepFiles | None = None,
) -> Definition | None:
    """Check a canonical document and return its definition, with its templates expanded and its captures named."""
    document = complete(expand(document, vocabulary.templates, problems), problems)
    if scripts is not None:
        document = inline(document, scripts, problems)
    definition = validated(document, problems)
    workflow = entry(document, "workflow")
    steps = list(all_steps(workflow))
    for kind, step in steps:
        if kind not in LOOPS:  # their params are those of loops, which are checked with the document
            vocabulary.types.check(step, problems, kind=kind)
    vocabulary.types.check_references([step for _, step in steps], problems)
    check_document(document, problems)
    check_graph(workflow, problems)
    if definition is not None and workflow is not None and not problems.errors:
        check_capture_order(workflow, vocabulary.types, problems, files)
        dry_run(definition, document, vocabulary, problems, system_millis, files)
    return definition
