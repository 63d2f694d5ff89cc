"""The values of a definition's params, as far as they are known before a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from calve.definition.document import NOWHERE, Node
from calve.definition.dry_run.facts import DryRunFacts, asks_the_run
from calve.definition.files import SCRIPT, StepFiles
from calve.definition.model import (
    SEPARATOR,
    BooleanParam,
    Definition,
    ForeachStep,
    Param,
    Params,
    Step,
    StringArrayParam,
    TypedStep,
    WhileStep,
)
from calve.definition.params import (
    FileText,
    InitiatorType,
    InstanceFunctions,
    Language,
    MergeContext,
    Parameter,
    ParamSource,
    StepScope,
    escaped,
    evaluate_file,
    evaluate_step_params,
    evaluate_workflow_params,
    fresh_workflow_params,
    line_and_column,
    literal_texts,
    merge,
    needs,
    reference_index,
    references,
    step_params,
    step_reference,
    unresolved_index,
    values_of,
)
from calve.definition.references import named_step
from calve.definition.step_types import DYNAMIC, FileField, Outputs, StepType, files_of, unresolved_references
from calve.definition.vocabulary import Vocabulary
from calve.errors import CalveError
from calve.expressions import Clock

PATIENCE = 10_000
"""The most milliseconds that all expressions of a definition may take together: a person waits for the result."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A reference to something that is not defined."""

    step_id: str | None
    what: str
    """What refers to it: a param, a field of one (``spark.script``), the targets, a condition."""
    name: str
    keys: tuple[str, ...]
    """Its path in the step or the workflow."""
    known: tuple[str, ...] = ()
    """The names that exist, for a hint."""
    unknown: "UnknownOutput | None" = None
    """Set if the name begins with that of a step."""
    where: str = ""
    """The position in the text: ``line 2, column 8``, or ``copy.sql:2:8`` in a file."""


@dataclass(frozen=True, slots=True)
class UnknownOutput:
    """A reference to an output that a step does not have."""

    step_id: str
    path: str
    """The path of the output; empty, if only the step is named."""
    known: tuple[str, ...]
    """The outputs that the step has at this level."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A param that cannot be evaluated or passed on."""

    step_id: str | None
    param: str | None
    error: CalveError


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file that a step reads when it runs."""

    step_id: str
    field: str
    """The field that names it: ``spark.file``."""
    path: str
    holds: str = ""
    """The field that could hold the text instead, if there is one."""
    text: str | None = None
    """The text as it could be written in that field, with references resolved if all are known; None if not found."""
    is_in_project: bool = True
    error: CalveError | None = None
    """Why it cannot be read."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The params that have a value before the run, and what is wrong with others; the rest is known at run time."""

    workflow: Mapping[str, Parameter]
    steps: Mapping[str, Mapping[str, Parameter]]
    missing: tuple[Missing, ...]
    failures: tuple[Failure, ...]
    unknown: Callable[[str, str], UnknownOutput | None]
    """Tells whether a step lacks an output, by its path; None if it has it, or that is known only at run time."""
    files: tuple[CheckedFile, ...] = ()


def resolve(
    definition: Definition,
    vocabulary: Vocabulary,
    *,
    run: Params,
    clock: Clock,
    places: Mapping[str, Node] | None = None,
    files: StepFiles | None = None,
) -> Resolution:
    """Evaluate all params that do not depend on what is known only at run time.

    Args:
        definition: whose params.
        vocabulary: the step types, templates and default params.
        run: params given at the start.
        clock: returns the current time.
        places: the steps in canonical form, where the caller has them.
        files: finds the files that steps read; they are not checked if it is not given.
    """
    found = places or {step.id: NOWHERE.made(step.as_json()) for step in definition.workflow.all_steps()}
    return _Resolver(definition, vocabulary, clock, found, files).all(run)


@dataclass(slots=True)
class _Level:
    """The params of the workflow or of one step, and what is known about the names they use."""

    step_id: str | None
    params: Params
    evaluate: Callable[[Params], dict[str, Parameter]]
    later: Callable[[str], bool | None]
    """True for a name known only at run time, False for one known now, None for one that is not defined."""


@dataclass(slots=True)
class _Resolver:
    definition: Definition
    vocabulary: Vocabulary
    clock: Clock
    places: Mapping[str, Node]
    files: StepFiles | None
    workflow: dict[str, Parameter] = field(default_factory=dict)
    declared: Params = field(default_factory=dict)
    steps: dict[str, dict[str, Parameter]] = field(default_factory=dict)
    outputs: dict[str, Outputs] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    checked: list[CheckedFile] = field(default_factory=list)
    until: int = 0

    def all(self, run: Params) -> Resolution:
        """Resolve the workflow, then its steps."""
        workflow = self.definition.workflow
        self.until = self.clock() + PATIENCE
        for step in workflow.all_steps():
            self.outputs[step.id] = self.vocabulary.types.outputs(self.places[step.id], kind=step.kind)
        self._workflow(run)
        self._steps(workflow.steps, frozenset())
        found = (tuple(self.missing), tuple(self.failures), self._unknown, tuple(self.checked))
        return Resolution(self.workflow, self.steps, *found)

    def _workflow(self, run: Params) -> None:
        workflow, defaults = self.definition.workflow, self.vocabulary.defaults
        stubs = {
            name: stub
            for name, stub in defaults.dry_run.items()
            if name in workflow.params and workflow.params[name].type is stub.type and name not in run
        }
        try:
            self.declared = fresh_workflow_params(
                defaults=defaults.workflow,
                definition=workflow.params,
                run={**stubs, **run},
                initiator=InitiatorType.MANUAL,
            )
        except CalveError as error:
            self._fail(None, error)
            return
        language = self._language(None)
        level = _Level(
            None,
            self.declared,
            lambda params: evaluate_workflow_params(params, workflow_id=workflow.id, language=language),
            lambda name: False if name in self.declared else None,
        )
        self.workflow = self._evaluated(level)

    def _steps(self, steps: Iterable[Step], loops: frozenset[str]) -> None:
        for step in steps:
            self._step(step, loops)
            if isinstance(step, ForeachStep | WhileStep):
                loop = step.params.get("loop_params")
                inner = frozenset(getattr(loop, "value", None) or ())
                self._steps(step.steps, loops | inner | {"loop_index"})

    def _step(self, step: Step, loops: frozenset[str]) -> None:
        kind = step.type if isinstance(step, TypedStep) else step.kind
        facts = self.vocabulary.defaults.step
        try:
            params = step_params(
                defaults={name: facts[name] for name in facts if name in step.params},
                type_defaults=self.vocabulary.defaults.of_type(kind),
                template=self._template(step),
                injected={},
                definition=step.params,
                run={},
                restart={},
                initiator=InitiatorType.MANUAL,
                is_fresh=True,
            )
        except CalveError as error:
            self._fail(step.id, error)
            return
        visible = {name: param for name, param in self.workflow.items() if name not in loops}
        scope, language = StepScope(step.id, visible), self._language(step)
        # The default params of every step, such as its attempt, are known only at run time.
        own = {name: param for name, param in params.items() if name not in facts}
        level = _Level(
            step.id,
            own,
            lambda params: evaluate_step_params(params, scope=scope, language=language),
            lambda name: self._is_later(name, own, loops),
        )
        self.steps[step.id] = self._evaluated(level)
        self._more(step, level)
        step_type = self.vocabulary.types.find(kind)
        self._texts(level, step_type, lambda file: self._resolved(file, level, scope, language))

    def _texts(self, level: _Level, step_type: StepType, resolved: Callable[[FileText], str | None]) -> None:
        """Check the references in the SQL and values of a step, and in the files that it reads."""
        step_id = str(level.step_id)
        results = values_of(self.steps[step_id])
        for where, error in unresolved_references(step_type, level.params, results, self.declared.get):
            self.failures.append(Failure(step_id, where, error))
        if self.files is None:
            return
        path = f"{step_type.config}.path"
        for found in files_of(step_type, level.params, lambda text: resolved(FileText(text, "", path)) or DYNAMIC):
            self._file(level, found, f"{step_type.config}.{found.field}", self.files, resolved)

    def _file(
        self,
        level: _Level,
        named: FileField,
        where: str,
        files: StepFiles,
        resolved: Callable[[FileText], str | None],
    ) -> None:
        step_id = str(level.step_id)
        checked = CheckedFile(step_id, where, named.path, named.holds)
        try:
            found = files.find(named.path)
        except CalveError as error:
            self.checked.append(replace(checked, error=error))
            return
        if found is None:
            self.checked.append(checked)
            return
        file = FileText(found.text, named.path, where)
        for name in references(file.text):
            if level.later(name) is None:
                place = file.at(reference_index(file.text, name) or 0)
                self._miss(step_id, where, name, ("params", where), place)
        text = resolved(file)
        written = found.text if text is None else escaped(text)
        self.checked.append(replace(checked, text=written, is_in_project=found.is_in_project))

    def _resolved(self, file: FileText, level: _Level, scope: StepScope, language: Language) -> str | None:
        """Return a text with its references resolved; None if that is not possible before the run, or fails."""
        own = self.steps[scope.step_id]
        known = {name for name in (*own, *scope.workflow) if level.later(name) is False}
        if unresolved_index(file.text) is None and not known.issuperset(references(file.text)):
            return None
        try:
            found = evaluate_file(file, own=own, scope=scope, language=language)
        except CalveError as error:
            if file.file:  # for a path it is reported with the field
                self.failures.append(Failure(scope.step_id, file.field, error))
            return None
        return found if isinstance(found, str) else None

    def _more(self, step: Step, level: _Level) -> None:
        """Report undefined references in conditions and targets of a step, which see its own outputs."""
        texts: dict[tuple[str, ...], tuple[str, Param]] = {
            ("transition", "successors", target): (f"the condition of {target}", BooleanParam(expression=condition))
            for target, condition in step.transition.successors.items()
        }
        if isinstance(step, WhileStep):
            texts[("condition",)] = ("condition", BooleanParam(expression=step.condition))
        if isinstance(step, TypedStep) and step.targets:
            texts[("targets",)] = ("targets", StringArrayParam(value=list(step.targets)))
        inside = getattr(step.params.get("loop_params"), "value", None) or {}
        given = {*self.outputs[step.id].params, *inside, "loop_index"}
        is_open = self.outputs[step.id].is_open
        for keys, (what, param) in texts.items():
            for name in needs(param):
                is_own = name in given or (is_open and step_reference(name, self.outputs) is None)
                if not is_own and level.later(name) is None:
                    self._miss(step.id, what, name, keys)

    def _miss(self, step_id: str | None, what: str, name: str, keys: tuple[str, ...], where: str = "") -> None:
        found = named_step(name, self.outputs)
        owner, path = found if found[0] else (name if name in self.outputs else "", "")
        unknown = (self._unknown(owner, path) or UnknownOutput(owner, "", ())) if owner else None
        own = tuple(self.outputs[step_id].params) if step_id is not None and keys[0] != "params" else ()
        steps = tuple(f"{each}.{output}" for each in self.outputs for output in self.outputs[each].params)
        known = (*self.declared, *own, *(steps if "." in name else ()))
        self.missing.append(Missing(step_id, what, name, keys, known, unknown, where))

    def _unknown(self, step_id: str, path: str) -> UnknownOutput | None:
        """Return what is wrong with the path of an output; None if nothing is, or that is known only at run time."""
        outputs, declared = self.outputs[step_id], set(self._declared_by(step_id))
        head, _, rest = path.partition(".")
        if outputs.is_open or path in outputs.params or head in declared:
            return None
        if head not in outputs.params:
            return UnknownOutput(step_id, path, tuple(outputs.params) or tuple(sorted(declared)))
        inside = [each.name for each in outputs.params[head].params]
        if not inside or rest.partition(".")[0] in inside:
            return None
        return UnknownOutput(step_id, path, tuple(f"{head}.{name}" for name in inside))

    def _template(self, step: Step) -> Params:
        if not isinstance(step, TypedStep) or step.sub_type is None:
            return {}

        def above(below: Params, own: Params) -> Params:
            return merge(below, own, MergeContext(ParamSource.TEMPLATE_SCHEMA))

        bare = step.model_copy(update={"params": {}})
        return self.vocabulary.templates.step_params(bare, self.definition.workflow.params, above)

    def _is_later(self, name: str, own: Params, loops: frozenset[str]) -> bool | None:
        if name in loops or name in self.vocabulary.defaults.step:
            return True
        if name in self.declared and name not in self.workflow:
            return True
        if name in self.declared or name in own:
            return False
        step_id, param = named_step(name, self.outputs)
        if not step_id:
            return True if SEPARATOR in name else None  # a signal's param
        return True if self._unknown(step_id, param) is None else None

    def _declared_by(self, step_id: str) -> Iterator[str]:
        for step in self.definition.workflow.all_steps():
            if step.id == step_id:
                yield from step.params
        yield from self.vocabulary.defaults.step

    def _evaluated(self, level: _Level) -> dict[str, Parameter]:
        """Evaluate what is known now; a param that fails is left out, and so is whatever needs it."""
        uses = {name: tuple(needs(param)) for name, param in level.params.items()}
        later = {
            name
            for name, param in level.params.items()
            if asks_the_run(param, lambda asked: level.later(asked) is False)
        }
        for name, used in uses.items():
            for other in used:
                # A script that has not been read is known at the push, as an output is at run time.
                state = True if other == SCRIPT else level.later(other)
                if state is None:
                    where, place = _located(name, level.params[name], other)
                    self._miss(level.step_id, where, other, ("params", where), place)
                if state is not False:
                    later.add(name)
        while True:
            later = _with_dependents(later, uses)
            known = {name: param for name, param in level.params.items() if name not in later}
            try:
                return level.evaluate(known)
            except CalveError as error:
                failed = self._fail(level.step_id, error)
                # If the error names no param, all are left out, so that the loop ends.
                later |= {name for name in known if name == failed} or known.keys()

    def _fail(self, step_id: str | None, error: CalveError) -> str | None:
        name = error.context.get("param")
        self.failures.append(Failure(step_id, name, error))
        return name

    def _language(self, step: Step | None) -> Language:
        facts = DryRunFacts(self.definition, step)
        return Language(functions=InstanceFunctions(facts), clock=self.clock, until=self.until)


def _located(name: str, param: Param, reference: str) -> tuple[str, str]:
    """Return the field of a param that contains a reference, and its line and column if that adds something."""
    for where, text in literal_texts(param, name):
        index = reference_index(text, reference)
        if index is not None:
            line, column = line_and_column(text, index)
            return where, f"line {line}, column {column}" if where != name or "\n" in text else ""
    return name, ""


def _with_dependents(names: set[str], uses: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the names and all that use them, directly or not."""
    users: dict[str, list[str]] = {}
    for name, used in uses.items():
        for other in used:
            users.setdefault(other, []).append(name)
    found, waiting = set(names), list(names)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in found:
                found.add(user)
                waiting.append(user)
    return found
