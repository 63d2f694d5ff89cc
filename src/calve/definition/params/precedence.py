"""Merge params by precedence: a later source overrides an earlier one, if the mode of the param allows it."""

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

from calve.definition.model import RESERVED_PARAMS, InternalMode, Param, ParamMode, Params, ParamType, Tag
from calve.definition.params.casts import NESTING, cast
from calve.definition.params.evaluation import needs
from calve.definition.params.interpolation import as_written, final_value
from calve.definition.params.parameter import InitiatorType, Parameter, ParamSource, source_of
from calve.errors import ParamError

_ON_START = frozenset({ParamMode.MUTABLE, ParamMode.MUTABLE_ON_START, ParamMode.MUTABLE_ON_START_RESTART})
_ON_RESTART = frozenset({ParamMode.MUTABLE, ParamMode.MUTABLE_ON_START_RESTART})
_ALLOWED = {ParamSource.OUTPUT_PARAMETER: frozenset({ParamMode.MUTABLE}), ParamSource.RESTART: _ON_RESTART}
_IMPLIED = {
    InternalMode.OPTIONAL: ParamMode.MUTABLE,
    InternalMode.REQUIRED: ParamMode.MUTABLE,
    InternalMode.PROVIDED: ParamMode.MUTABLE,
    InternalMode.RESERVED: ParamMode.CONSTANT,
}


@dataclass(frozen=True, slots=True)
class MergeContext:
    """The source that overrides params, and in which run; within a map, also the mode of the map."""

    source: ParamSource
    is_upstream: bool = False
    is_restart: bool = False
    outer_mode: ParamMode | None = None
    depth: int = 0

    @property
    def changeable(self) -> frozenset[ParamMode]:
        """The modes of params that may be changed."""
        allowed = _ALLOWED.get(self.source, _ON_START)
        return allowed & _ON_RESTART if self.is_restart else allowed

    def within(self, name: str, mode: ParamMode | None) -> "MergeContext":
        """Return the context of the members of a map.

        Raises:
            ParamError: it is nested too deep.
        """
        if self.depth >= NESTING:
            raise ParamError(f"Param [{name}] is nested deeper than [{NESTING}] maps", param=name)
        return replace(self, outer_mode=_strictest(self.outer_mode, mode), depth=self.depth + 1)


def merge(base: Mapping[str, Param], overlay: Mapping[str, Param], context: MergeContext) -> Params:
    """Return the params of both; those of ``overlay`` override those of ``base``.

    Raises:
        ParamError: a change that the mode of a param does not allow, or a value of another type.
    """
    changed = {name: _merged(name, base.get(name), param, context) for name, param in overlay.items()}
    return {**base, **changed}


def _merged(name: str, base: Param | None, overlay: Param, context: MergeContext) -> Param:
    internal_mode = (base.internal_mode if base else None) or overlay.internal_mode
    fields = {
        "value": _value(name, base, overlay, context),
        "expression": overlay.expression,
        "mode": _mode(base, overlay, internal_mode, context),
        "internal_mode": internal_mode,
        "tags": _tags(base.tags if base else (), overlay.tags),
        "validator": base.validator if base and overlay.validator is None else overlay.validator,
    }
    if base is None:
        source = _source(None, overlay, context, is_changed=False)
        return overlay.model_copy(update={**fields, "meta": {**(overlay.meta or {}), "source": source.value}})
    merged = base.model_copy(update=fields)
    is_changed = essence(merged) != essence(base)
    if is_changed and not context.source.is_system:
        _check(name, base, overlay, merged, context)
    source = _source(base, overlay, context, is_changed=is_changed)
    return merged.model_copy(update={"meta": {**(overlay.meta or {}), "source": source.value}})


def essence(param: Param) -> tuple[Any, ...]:
    """Return the parts of a definition that make it equal to another; its source is not one of them."""
    value: Any = param.value
    if param.type is ParamType.MAP and value is not None:
        value = {name: essence(member) for name, member in value.items()}
    return (param.type, value, param.expression, param.mode, param.tags, param.validator)


def _value(name: str, base: Param | None, overlay: Param, context: MergeContext) -> Any:
    if overlay.is_literal and overlay.type is ParamType.MAP:
        mode = (base or overlay).mode
        return merge(_members(name, base, ParamType.MAP), overlay.value or {}, context.within(name, mode))
    if overlay.is_literal and overlay.type is ParamType.STRING_MAP:
        return {**_members(name, base, ParamType.STRING_MAP), **(overlay.value or {})}
    if base is None or overlay.value is None or overlay.type is base.type:
        return overlay.value
    if overlay.type is ParamType.SECRET:
        raise _mismatch(name, overlay.type, base.type)
    try:
        value = cast(name, base.type, overlay.value).value
    except ParamError as error:
        raise _mismatch(name, overlay.type, base.type) from error
    return overlay.value if base.type is ParamType.SECRET else value


def _mismatch(name: str, found: ParamType, wanted: ParamType) -> ParamError:
    return ParamError(f"ParameterDefinition type mismatch name [{name}] from [{found}] != to [{wanted}]", param=name)


def _members(name: str, base: Param | None, of: ParamType) -> dict[str, Any]:
    """Return the members of a map to merge into."""
    if base is None:
        return {}
    if base.type is not of:
        raise ParamError(f"ParameterDefinition type mismatch, [{name}] is not a [{of}] but [{base.type}]", param=name)
    if not base.is_literal:
        raise ParamError(f"{of} param [{name}] definition exp=[{base.expression}] is not a literal", param=name)
    members: Any = base.value or {}
    return dict(members)


def _strictest(*modes: ParamMode | None) -> ParamMode | None:
    return max((mode for mode in modes if mode is not None), key=lambda mode: mode.strictness, default=None)


def _mode(base: Param | None, overlay: Param, internal: InternalMode | None, context: MergeContext) -> ParamMode:
    mode = _strictest(
        overlay.mode or (base.mode if base else None),
        _IMPLIED[internal] if internal else None,
        # A parent controls its children: its params may be less strict, and become as strict as theirs.
        base.mode if base and context.is_upstream else None,
        context.outer_mode,
    )
    return mode or ParamMode.MUTABLE


def _tags(base: tuple[Tag, ...], overlay: tuple[Tag, ...]) -> tuple[Tag, ...]:
    return tuple({tag.name: tag for tag in (*base, *overlay)}.values())


def _check(name: str, base: Param, overlay: Param, merged: Param, context: MergeContext) -> None:
    """Refuse a change that a user is not allowed to make."""
    source = source_of(overlay)
    if context.is_upstream and source not in {None, ParamSource.DEFINITION}:
        return
    if merged.mode not in context.changeable:
        raise ParamError(f"Cannot modify param with mode [{merged.mode}] for parameter [{name}]", param=name)
    if base.mode and merged.mode and merged.mode.strictness < base.mode.strictness:
        raise ParamError(
            f"Cannot modify param mode to be less strict for parameter [{name}] from [{base.mode}] to [{merged.mode}]",
            param=name,
        )
    if overlay.internal_mode is not None:
        raise ParamError(f"Cannot modify system mode for parameter [{name}]", param=name)
    if source is not None and not context.is_upstream:
        raise ParamError(f"Cannot modify source for parameter [{name}]", param=name)


def _source(base: Param | None, overlay: Param, context: MergeContext, *, is_changed: bool) -> ParamSource:
    kept = source_of(base) if base else source_of(overlay)
    is_kept = context.source.is_system or (base is not None and context.is_upstream)
    return kept if kept and is_kept and not is_changed else context.source


def cleaned(params: Mapping[str, Param]) -> Params:
    """Return params ready for evaluation: without internal modes, and without optional ones that were not given.

    Raises:
        ParamError: one that is required was not given.
    """
    kept = {name: _cleaned(name, param) for name, param in params.items()}
    return {name: param for name, param in kept.items() if param is not None}


def _cleaned(name: str, param: Param) -> Param | None:
    value: Any = param.value
    if param.type is ParamType.MAP and value is not None:
        value = cleaned(value)
    is_optional = param.internal_mode is InternalMode.OPTIONAL
    if is_optional and param.expression is None and (value is None or (param.type is ParamType.MAP and not value)):
        return None
    if value is None and param.expression is None:
        raise ParamError(f"[{name}] is a required parameter (type=[{param.type}])", param=name)
    is_clean = param.internal_mode is None and value is param.value
    return param if is_clean else param.model_copy(update={"value": value, "internal_mode": None})


_OF_THE_SUBWORKFLOW_STEP = frozenset({"subworkflow_id", "subworkflow_version"})


def fresh_workflow_params(*, defaults: Params, definition: Params, run: Params, initiator: InitiatorType) -> Params:
    """Return the params of a new workflow instance.

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
    """Return the params of a restarted workflow instance; ``previous`` are those of its last run.

    Raises:
        ParamError: a change that is not allowed.
    """
    # Reserved names belong to the system, which sets them again.
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
    that the newer version defines differently, or that refers to such a param, is evaluated again. Params given at the
    start and at earlier restarts keep their values.

    Args:
        previous: the params of the previous run.
        defaults: the params that every workflow has.
        older: the params that the version of the previous run defines.
        newer: the params that the version defines with which the instance continues.
        run: the params given at the start and at restarts since.
        restart: the params given at this restart.
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
    """Return the params of a step when it starts; each argument overrides those before it.

    Params given to a run or restart that the step does not define come before the definition, which may refer to them.

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
        workflow: the params of the step's instance.
        step: the params of the step that its definition names.
        explicit: whether to pass down only those of the workflow's params that are in ``always``.
        always: the names of params that are always passed down.

    Raises:
        ParamError: a param has no result yet.
    """
    passed = {name: param for name, param in workflow.items() if not explicit or name in always}
    children = {**passed, **step}
    return {name: param.as_definition() for name, param in children.items() if name not in _OF_THE_SUBWORKFLOW_STEP}


def with_outputs(
    params: Mapping[str, Parameter], outputs: Params, *, evaluated_time: int, typical: Container[str] = ()
) -> dict[str, Parameter]:
    """Return a step's params with its outputs: MUTABLE params that it declares.

    Those in ``typical`` need no declaration: every step of its type has them.

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
