"""Params laid over params: a later source changes what an earlier one left open."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from calve.definition.model.params import InternalMode, Param, ParamMode, Params, ParamType
from calve.definition.model.tags import Tag
from calve.definition.params.casts import NESTING, cast
from calve.definition.params.parameter import source_of
from calve.definition.params.sources import ParamSource
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
    """Who merges, and in what run; within a map, also the mode of the map."""

    source: ParamSource
    is_upstream: bool = False
    is_restart: bool = False
    outer_mode: ParamMode | None = None
    depth: int = 0

    @property
    def changeable(self) -> frozenset[ParamMode]:
        """The modes that a param may have if it is to be changed."""
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
    """Return the params of both; what ``overlay`` defines changes what ``base`` does.

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
    """Return what makes two definitions the same; who wrote them is not part of it."""
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
    """Return the members of a map that is to be merged into."""
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
        # A parent has its children under control: its params may be looser, and become as strict as theirs.
        base.mode if base and context.is_upstream else None,
        context.outer_mode,
    )
    return mode or ParamMode.MUTABLE


def _tags(base: tuple[Tag, ...], overlay: tuple[Tag, ...]) -> tuple[Tag, ...]:
    return tuple({tag.name: tag for tag in (*base, *overlay)}.values())


def _check(name: str, base: Param, overlay: Param, merged: Param, context: MergeContext) -> None:
    """Refuse a change that a user may not make."""
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
    """Return params as they are evaluated: without optional ones that were not given, and without internal modes.

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
