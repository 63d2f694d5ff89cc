"""In which order the params of workflows and steps come together: each argument wins over those before it."""

from collections.abc import Collection, Container, Mapping

from calve.definition.model.names import RESERVED_PARAMS
from calve.definition.model.params import Param, Params
from calve.definition.params.evaluation import needs
from calve.definition.params.literals import as_written, final_value
from calve.definition.params.merging import MergeContext, cleaned, essence, merge
from calve.definition.params.parameter import Parameter
from calve.definition.params.sources import InitiatorType, ParamSource
from calve.errors import ParamError

_OF_THE_SUBWORKFLOW_STEP = frozenset({"subworkflow_id", "subworkflow_version"})


def fresh_workflow_params(*, defaults: Params, definition: Params, run: Params, initiator: InitiatorType) -> Params:
    """Return the params of a workflow instance that starts.

    Raises:
        ParamError: a change that is not allowed, or a required param without value.
    """
    is_upstream = initiator.is_upstream
    merged = merge({}, defaults, MergeContext(ParamSource.SYSTEM_DEFAULT, is_upstream=is_upstream))
    merged = merge(merged, definition, MergeContext(ParamSource.DEFINITION, is_upstream=is_upstream))
    context = MergeContext(initiator.run_source(is_fresh=True), is_upstream=is_upstream)
    return cleaned(merge(merged, run, context))


def restarted_workflow_params(
    *, previous: Mapping[str, Parameter], run: Params, restart: Params, initiator: InitiatorType
) -> Params:
    """Return the params of a workflow instance that is restarted; ``previous`` are those of the run before.

    Raises:
        ParamError: a change that is not allowed.
    """
    # Reserved names belong to the system, which gives them anew.
    before = {name: param.as_definition() for name, param in previous.items() if name not in RESERVED_PARAMS}
    merged = merge({}, before, MergeContext(ParamSource.SYSTEM))
    source = initiator.run_source(is_fresh=False)
    context = MergeContext(source, is_upstream=initiator.is_upstream, is_restart=True)
    return cleaned(merge(merge(merged, run, context), restart, context))


def continued_workflow_params(
    *,
    previous: Mapping[str, Parameter],
    defaults: Params,
    older: Params,
    newer: Params,
    run: Params,
    restart: Params,
    initiator: InitiatorType,
) -> Params:
    """Return the params of an instance that continues with another version of its workflow.

    A param that both versions define alike keeps its result, so that a date stays the date of the instance. A param
    that the newer version defines differently, or that refers to such a param, is evaluated again. What the start and
    earlier restarts gave stays as it was given.

    Args:
        previous: the params of the run before.
        defaults: the params that every workflow has.
        older: what the version of that run defines.
        newer: what the version defines with which the instance continues.
        run: what the start, and restarts since, gave.
        restart: what this restart gives.
        initiator: who started the instance.

    Raises:
        ParamError: a change that is not allowed, or a required param without value.
    """
    known, changed = {**defaults, **newer}, _redefined({**defaults, **older}, {**defaults, **newer})
    kept = {
        name: param.as_definition()
        for name, param in previous.items()
        if name not in changed and name not in RESERVED_PARAMS
    }
    anew = known.keys() - kept.keys()
    merged = merge({}, kept, MergeContext(ParamSource.SYSTEM))
    for params, source in ((defaults, ParamSource.SYSTEM_DEFAULT), (newer, ParamSource.DEFINITION)):
        merged = merge(merged, {name: params[name] for name in params if name in anew}, MergeContext(source))
    given = {name: param for name, param in run.items() if name not in kept}
    at_start = MergeContext(initiator.run_source(is_fresh=True), is_upstream=initiator.is_upstream)
    now = MergeContext(initiator.run_source(is_fresh=False), is_upstream=initiator.is_upstream, is_restart=True)
    return cleaned(merge(merge(merged, given, at_start), restart, now))


def _redefined(older: Params, newer: Params) -> set[str]:
    """Return the params that two versions define differently, and those that refer to one of them."""
    names = older.keys() | newer.keys()
    found = {name for name in names if name not in older or name not in newer or _differ(older[name], newer[name])}
    uses = {name: frozenset(needs(param)) for name, param in newer.items()}
    while more := {name for name, used in uses.items() if name not in found and used & found}:
        found |= more
    return found


def _differ(one: Param, other: Param) -> bool:
    return one is not other and essence(one) != essence(other)


def step_params(  # noqa: D417 - the order is what there is to say about the others
    *,
    defaults: Params,
    type_defaults: Params,
    template: Params,
    injected: Params,
    definition: Params,
    run: Params,
    restart: Params,
    initiator: InitiatorType,
    is_fresh: bool,
) -> Params:
    """Return the params of a step that starts.

    What a run or a restart gives and the step does not define comes before the definition, which may refer to it.

    Args:
        is_fresh: whether the run is not a restart.

    Raises:
        ParamError: a change that is not allowed, or a required param without value.
    """
    undefined = {name: param for name, param in {**restart, **run}.items() if name not in definition}
    by_user = MergeContext(initiator.run_source(is_fresh=is_fresh), is_restart=not is_fresh)
    merged: Params = {}
    for params, context in (
        (defaults, MergeContext(ParamSource.SYSTEM_DEFAULT)),
        (type_defaults, MergeContext(ParamSource.SYSTEM_DEFAULT)),
        (template, MergeContext(ParamSource.TEMPLATE_SCHEMA)),
        (injected, MergeContext(ParamSource.SYSTEM_INJECTED)),
        (undefined, by_user),
        (definition, MergeContext(ParamSource.DEFINITION)),
        (run, by_user),
        (restart, by_user),
    ):
        merged = merge(merged, params, context)
    return cleaned(merged)


def template_params(*, schema: Params, workflow: Mapping[str, Parameter]) -> Params:
    """Return the params of a job template, changed by the workflow's params of the same names.

    Raises:
        ParamError: a change that is not allowed.
    """
    same = {name: workflow[name].as_definition() for name in schema if name in workflow}
    return merge(schema, same, MergeContext(ParamSource.WORKFLOW_PARAMETER, is_upstream=True))


def subworkflow_params(
    *,
    workflow: Mapping[str, Parameter],
    step: Mapping[str, Parameter],
    explicit: bool,
    always: Collection[str] = (),
) -> Params:
    """Return the run params that a subworkflow step passes down.

    Args:
        workflow: the params of the instance that the step is in.
        step: those params of the step that its definition names.
        explicit: whether of the workflow's params only those in ``always`` go down.
        always: names that go down in any case.

    Raises:
        ParamError: a param has no result yet.
    """
    passed = {name: param for name, param in workflow.items() if not explicit or name in always}
    children = {**passed, **step}
    return {name: param.as_definition() for name, param in children.items() if name not in _OF_THE_SUBWORKFLOW_STEP}


def with_outputs(
    params: Mapping[str, Parameter], outputs: Params, *, evaluated_time: int, typical: Container[str] = ()
) -> dict[str, Parameter]:
    """Return a step's params with what it gave back: params that it declares and that are MUTABLE.

    Those in ``typical`` need no declaration: every step of its type gives them.

    Raises:
        ParamError: the step does not declare one of them, or it may not be changed.
    """
    changed = dict(params)
    for name, output in outputs.items():
        if name not in params and name not in typical:
            raise ParamError(f"Invalid output parameter [{name}], not defined in params", param=name)
        base = {name: params[name].as_literal()} if name in params else {}
        final = Parameter(name, output, as_written(output)).as_literal()
        merged = merge(base, {name: final}, MergeContext(ParamSource.OUTPUT_PARAMETER))[name]
        changed[name] = Parameter(name, merged, final_value(merged), evaluated_time)
    return changed
