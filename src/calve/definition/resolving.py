"""What the params of a definition will be, as far as that can be told before a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from calve.definition.document import Mark, Node
from calve.definition.foretelling import DryRunFacts, asks_the_run
from calve.definition.model.names import SEPARATOR
from calve.definition.model.params import Params
from calve.definition.model.steps import ForeachStep, Step, TypedStep, WhileStep
from calve.definition.model.workflow import Definition
from calve.definition.params import (
    InitiatorType,
    InstanceFunctions,
    Language,
    MergeContext,
    Parameter,
    ParamSource,
    StepScope,
    evaluate_step_params,
    evaluate_workflow_params,
    fresh_workflow_params,
    merge,
    needs,
    step_params,
    step_reference,
)
from calve.definition.scripts import SCRIPT
from calve.definition.sources import named_step
from calve.definition.step_types import Outputs
from calve.definition.vocabulary import Vocabulary
from calve.errors import CalveError
from calve.expressions import Clock

_NOWHERE = Node(None, Mark(1, 1), "")
PATIENCE = 10_000
"""Milliseconds that all expressions of a definition together may take: somebody waits for the answer."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A param refers to something that nothing in the definition gives."""

    step_id: str | None
    param: str
    name: str
    is_output: bool = False
    """It looks like an output of a step, which has none of that name."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A param cannot be evaluated."""

    step_id: str | None
    param: str | None
    error: CalveError


@dataclass(frozen=True, slots=True)
class Resolution:
    """The params that have a value before the run, and what is wrong with others; those left out are up to the run."""

    workflow: Mapping[str, Parameter]
    steps: Mapping[str, Mapping[str, Parameter]]
    missing: tuple[Missing, ...]
    failures: tuple[Failure, ...]


def resolve(
    definition: Definition,
    vocabulary: Vocabulary,
    *,
    run: Params,
    clock: Clock,
    places: Mapping[str, Node] | None = None,
) -> Resolution:
    """Evaluate all params that do not depend on what only a run can tell.

    Args:
        definition: whose params.
        vocabulary: what else gives params: step types, templates, defaults.
        run: params given at the start.
        clock: what time it is.
        places: the steps in canonical form, where the caller has them.
    """
    found = places or {step.id: _NOWHERE.made(step.as_json()) for step in definition.workflow.all_steps()}
    return _Resolving(definition, vocabulary, clock, found).all(run)


@dataclass(slots=True)
class _Level:
    """The params of the workflow or of one step, and what may be said of the names they use."""

    step_id: str | None
    params: Params
    evaluate: Callable[[Params], dict[str, Parameter]]
    later: Callable[[str], bool | None]
    """True for a name that only the run can tell, False for one that is known, None for one that nothing gives."""


@dataclass(slots=True)
class _Resolving:
    definition: Definition
    vocabulary: Vocabulary
    clock: Clock
    places: Mapping[str, Node]
    workflow: dict[str, Parameter] = field(default_factory=dict)
    declared: Params = field(default_factory=dict)
    steps: dict[str, dict[str, Parameter]] = field(default_factory=dict)
    outputs: dict[str, Outputs] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    until: int = 0

    def all(self, run: Params) -> Resolution:
        """Resolve the workflow, then its steps."""
        workflow = self.definition.workflow
        self.until = self.clock() + PATIENCE
        for step in workflow.all_steps():
            self.outputs[step.id] = self.vocabulary.types.outputs(self.places[step.id], kind=step.kind)
        self._workflow(run)
        self._steps(workflow.steps, frozenset())
        return Resolution(self.workflow, self.steps, tuple(self.missing), tuple(self.failures))

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
        # What every step has by itself is a fact of the run, such as its attempt.
        own = {name: param for name, param in params.items() if name not in facts}
        level = _Level(
            step.id,
            own,
            lambda params: evaluate_step_params(params, scope=scope, language=language),
            lambda name: self._is_later(name, own, loops),
        )
        self.steps[step.id] = self._evaluated(level)

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
        outputs, head = self.outputs[step_id], param.partition(".")[0]
        is_there = outputs.is_open or head in outputs.params or head in self._declared_by(step_id)
        return True if is_there else None

    def _declared_by(self, step_id: str) -> Iterator[str]:
        for step in self.definition.workflow.all_steps():
            if step.id == step_id:
                yield from step.params
        yield from self.vocabulary.defaults.step

    def _evaluated(self, level: _Level) -> dict[str, Parameter]:
        """Evaluate what can be; a param that fails is left out, and so is whatever needs it."""
        uses = {name: tuple(needs(param)) for name, param in level.params.items()}
        later = {
            name
            for name, param in level.params.items()
            if asks_the_run(param, lambda asked: level.later(asked) is False)
        }
        for name, used in uses.items():
            for other in used:
                # A script that has not been read is up to the push, as an output is up to the run.
                state = True if other == SCRIPT else level.later(other)
                if state is None:
                    is_output = step_reference(other, self.outputs) is not None
                    self.missing.append(Missing(level.step_id, name, other, is_output))
                if state is not False:
                    later.add(name)
        while True:
            later = _with_dependents(later, uses)
            known = {name: param for name, param in level.params.items() if name not in later}
            try:
                return level.evaluate(known)
            except CalveError as error:
                failed = self._fail(level.step_id, error)
                # All of them where the error names none, so that this ends whatever it says.
                later |= {name for name in known if name == failed} or known.keys()

    def _fail(self, step_id: str | None, error: CalveError) -> str | None:
        name = error.context.get("param")
        self.failures.append(Failure(step_id, name, error))
        return name

    def _language(self, step: Step | None) -> Language:
        facts = DryRunFacts(self.definition, step)
        return Language(functions=InstanceFunctions(facts), clock=self.clock, until=self.until)


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
