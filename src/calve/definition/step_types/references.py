"""References in the texts of a step: SQL and values in its config map, and the files that it names. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from calve.definition.model import MapParam, Param, Params, StringArrayParam, StringMapParam, StringParam
from calve.definition.params import (
    braced_text,
    interpolate,
    is_reference,
    line_and_column,
    literal_texts,
    references,
    shown,
    unresolved_index,
    unresolved_reference,
)
from calve.definition.step_types.step_type import DYNAMIC, Content, Field, FileField, StepType, no_files
from calve.errors import ParamError

Fault = tuple[str, ParamError]
"""A field in which a ``${`` would be left unresolved, and the error about it."""


def unresolved_references(
    step_type: StepType, params: Params, results: Mapping[str, Any], workflow: Callable[[str], Param | None]
) -> Iterator[Fault]:
    """Yield what is wrong with the references in the SQL and the values of a step.

    Args:
        step_type: which fields hold SQL or values.
        params: the definitions of the step's params.
        results: what came of those that have been evaluated, by name.
        workflow: gives the definition of a param of the workflow, if there is one.
    """
    if step_type.config in params:
        param, result = params[step_type.config], results.get(step_type.config)
        looking = _Looking(lambda name: params.get(name) or workflow(name))
        yield from looking.in_fields(step_type.fields, param, result, step_type.config)


def files_of(step_type: StepType, params: Params, resolve: Callable[[str], Any]) -> tuple[FileField, ...]:
    """Return the files of a step whose references are resolved, except those whose paths only the run knows.

    Args:
        step_type: which fields name files.
        params: the definitions of the step's params.
        resolve: gives a text with its references resolved, or DYNAMIC where that is not possible yet.
    """
    members = _members(params[step_type.config]) if step_type.config in params else {}
    return tuple(step_type.files({name: _known(member, resolve) for name, member in members.items()}))


def named_files(step_type: StepType, params: Params) -> tuple[FileField, ...]:
    """Return the files of a step whose paths are literals in its definition."""
    return files_of(step_type, params, lambda text: DYNAMIC if references(text) else interpolate(text, {}))


def file_references(step_type: StepType, params: Params, read: Callable[[str], str | None]) -> frozenset[str] | None:
    """Return the names that the files of a step refer to; None if a file is missing, or only the run knows its path."""
    config = _members(params[step_type.config]) if step_type.config in params else {}
    files = named_files(step_type, params)
    texts = [read(file.path) for file in files]
    is_named_later = (
        "file" in config and "file" not in {file.field for file in files} and step_type.files is not no_files
    )
    if is_named_later or None in texts:
        return None
    return frozenset(name for text in texts for name in references(text or ""))


def _known(param: Param, resolve: Callable[[str], Any]) -> Any:
    """Return the texts of a literal, and DYNAMIC for what is not a text or not known yet."""
    match param:
        case StringParam(value=str(text)):
            return resolve(text)
        case StringArrayParam(value=list(texts)):
            return [resolve(text) for text in texts]
        case MapParam() | StringMapParam():
            return {name: _known(member, resolve) for name, member in _members(param).items()}
        case _:
            return DYNAMIC


@dataclass(frozen=True, slots=True)
class _Looking:
    """Finds every ``${`` that would be left unresolved."""

    definition: Callable[[str], Param | None]

    def in_fields(self, fields: Iterable[Field], param: Param, result: Any, where: str) -> Iterator[Fault]:
        """Check the entries of a map; if an expression gives the map, there are only results."""
        members, results = _members(param), result if isinstance(result, Mapping) else {}
        for item in fields:
            member, value, field = members.get(item.name), results.get(item.name), f"{where}.{item.name}"
            if item.fields and member is not None:
                yield from self.in_fields(item.fields, member, value, field)
            elif item.content is not Content.OTHER and member is not None:
                yield from _in_literals(member, field)
            if item.content is Content.SQL:
                yield from self._in_result(member, value, field)

    def _in_result(self, member: Param | None, value: Any, field: str) -> Iterator[Fault]:
        """Check SQL that is the whole value of an expression or an output, which nothing has resolved."""
        for text in _texts(shown(value)):
            index = text.find("${")
            if index >= 0:
                where = _place(field, text, index)
                message = f"{where}: {braced_text(text, index)} remains in a text from an expression or a step"
                remedy = "Such a text is not resolved. Write the statement in the field, and its values as references."
                yield from self._sources(member, (field, ParamError(message, remedy=remedy)), frozenset())

    def _sources(self, param: Param | None, left: Fault, seen: frozenset[str]) -> Iterator[Fault]:
        """Find where a ``${`` comes from; one that another param escapes as ``$${`` is intended."""
        if param is None or param.expression is not None:
            yield left
            return
        texts = [text for _, text in literal_texts(param, "")]
        for name in (name for text in texts if is_reference(text) for name in references(text)):
            source = None if name in seen else self.definition(name)
            faults = [] if source is None else [(left[0], error) for _, error in _in_literals(source, name)]
            yield from faults or self._sources(source, left, seen | {name})


def _in_literals(param: Param, field: str) -> Iterator[Fault]:
    for where, text in literal_texts(param, field):
        index = unresolved_index(text)
        if index is not None:
            yield where, unresolved_reference(_place(where, text, index), text, index)


def _texts(value: Any) -> Iterable[str]:
    match value:
        case str():
            return [value]
        case list():
            return [item for item in value if isinstance(item, str)]
        case dict():
            return [item for item in value.values() if isinstance(item, str)]
        case _:
            return []


def _place(field: str, text: str, index: int) -> str:
    line, column = line_and_column(text, index)
    return f"{field}, line {line}, column {column}"


def _members(param: Param) -> dict[str, Param]:
    match param:
        case MapParam(value=dict(members)):
            return members
        case StringMapParam(value=dict(texts)):
            return {name: StringParam(value=text) for name, text in texts.items()}
        case _:
            return {}
