"""The limits of one request. Counted on the parsed request, before it is validated.

Every fragment is measured once, however often it is spread: a request of a few hundred bytes whose fragments spread
each other can stand for millions of fields, and to expand it, even only to count, is the attack.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLResolveInfo,
    InlineFragmentNode,
    IntValueNode,
    ListTypeNode,
    NameNode,
    NonNullTypeNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    StringValueNode,
    ValidationRule,
    parse,
)
from graphql.validation.rules import overlapping_fields_can_be_merged
from strawberry.extensions.base_extension import SchemaExtension

from calve.settings import GraphqlSettings
from calve.texts import text_fault

FEW, MANY = 20, 200
"""The default and the maximum length of a list."""
LOG = 65_536
"""How many bytes of the end of a log are returned: one answer may contain the logs of many steps."""
LENGTH = 100_000
"""The maximum number of characters in a request."""
NESTING = 60
"""The maximum nesting of brackets, and of fragments and fields. The parser,
the rules of validation and the executor all call themselves for each."""
_BRACKETS = re.compile(r'"""(?:\\"""|(?!""").)*(?:"""|\Z)|"(?:\\.|[^"\\\n])*(?:"|$)|#[^\n\r]*|[\[({]|[\])}]', re.DOTALL)
"""Brackets, and strings and comments, whose brackets do not count."""
_MOST_DIGITS = 9

# To compare every field with every other of the same name takes time that grows with the square of their number. The
# library stops at half a million comparisons, which is a second; a request within our limits needs a few hundred.
overlapping_fields_can_be_merged.MAX_COMPLEXITY_BUDGET = 20_000

_LENGTHS = {
    **dict.fromkeys(("workflows", "instances", "signals", "captures", "checkpoints", "steps", "runs", "versions"), FEW),
    # What introspection gives: rounded up from the schema, so that the cost is about the size of the answer.
    "types": 60,
    "fields": 8,
    "args": 2,
    "inputFields": 2,
    "enumValues": 2,
    "directives": 6,
    "interfaces": 2,
    "possibleTypes": 2,
    "locations": 4,
}
"""The default lengths of the lists that fields return."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a selection, including its fragments."""

    depth: int = 0
    """How deep fields are nested, not counting those of introspection."""
    fields: int = 0
    aliases: int = 0
    cost: int = 0
    """How many fields the answer has if every list has its maximum length."""
    introspection: int = 0
    """The same for fields of the schema."""

    def beside(self, other: "Size") -> "Size":
        """Return the size of two adjacent selections."""
        return Size(
            max(self.depth, other.depth),
            self.fields + other.fields,
            self.aliases + other.aliases,
            self.cost + other.cost,
            self.introspection + other.introspection,
        )

    def inside(self, node: FieldNode) -> "Size":
        """Return the size of a field that contains this selection."""
        size = Size(
            self.depth + 1 if node.selection_set else self.depth,
            self.fields + 1,
            self.aliases + (node.alias is not None),
            1 + _times(node) * self.cost,
            _times(node) * self.introspection,
        )
        if node.name.value in {"__schema", "__type"}:
            return replace(size, depth=0, cost=1, introspection=size.cost)
        return size


@dataclass(frozen=True, slots=True)
class _Measuring:
    """Measures selections; each fragment once."""

    fragments: Mapping[str, FragmentDefinitionNode]
    measured: dict[str, Size | None]
    """By fragment; None while it is being measured."""

    def selection(self, selected: SelectionSetNode | None, level: int) -> Size:
        """Return the size of a selection.

        Raises:
            GraphQLError: a fragment contains itself, or fields and fragments are nested too deep.
        """
        if level > NESTING:
            raise GraphQLError(f"Fields and fragments may be nested at most {NESTING} levels deep.", selected)
        size = Size()
        for node in selected.selections if selected is not None else ():
            match node:
                case FieldNode():
                    size = size.beside(self.selection(node.selection_set, level + 1).inside(node))
                case InlineFragmentNode():
                    size = size.beside(self.selection(node.selection_set, level + 1))
                case FragmentSpreadNode():
                    size = size.beside(self._fragment(node, level))
        return size

    def _fragment(self, node: FragmentSpreadNode, level: int) -> Size:
        name = node.name.value
        if name not in self.fragments:
            return Size()  # validation reports it
        if name not in self.measured:
            self.measured[name] = None
            self.measured[name] = self.selection(self.fragments[name].selection_set, level + 1)
        size = self.measured[name]
        if size is None:
            raise GraphQLError(f"Fragment {name} contains itself.", node)
        return size


def check_text(query: str) -> None:
    """Refuse a request that is too long, or nested so deep that to parse it could exhaust the stack.

    Raises:
        GraphQLError: it is.
    """
    if len(query) > LENGTH:
        raise GraphQLError(f"A request may have at most {LENGTH} characters.")
    depth = 0
    for token in _BRACKETS.finditer(query):
        if token[0] in "[({":
            depth += 1
            if depth > NESTING:
                raise GraphQLError(f"Brackets may be nested at most {NESTING} levels deep.")
        elif token[0] in "])}":
            depth -= 1


def check_size(document: DocumentNode, limits: GraphqlSettings) -> None:
    """Refuse a request that exceeds a limit.

    Raises:
        GraphQLError: it does; the message has the number and the limit.
    """
    named = {one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)}
    measuring, all_of_them = _Measuring(named, {}), Size()
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            size = measuring.selection(node.selection_set, 0)
            all_of_them = all_of_them.beside(size)
            for has, limit, what in (
                (size.depth, limits.depth, "fields are nested {} deep; the maximum depth is {}"),
                (
                    size.cost,
                    limits.cost,
                    "this request returns up to {} fields; the maximum is {}. Request shorter lists",
                ),
                (
                    size.introspection,
                    limits.introspection,
                    "this request returns {} fields of the schema; the maximum is {}",
                ),
                (
                    all_of_them.fields,
                    limits.fields,
                    "this request names {} fields, with those of fragments; the maximum is {}",
                ),
                (all_of_them.aliases, limits.aliases, "this request has {} aliases; the maximum is {}"),
            ):
                if has > limit:
                    text = what.format(_shown(has), limit)
                    raise GraphQLError(f"{text[0].upper()}{text[1:]}.", node)


def check_lists(document: DocumentNode, variables: Mapping[str, Any]) -> None:
    """Refuse variables that are lists of too many values; lists in the request itself are limited by its tokens.

    Raises:
        GraphQLError: one is.
    """
    for operation in document.definitions:
        for variable in operation.variable_definitions or () if isinstance(operation, OperationDefinitionNode) else ():
            kind, given = variable.type, variables.get(variable.variable.name.value)
            is_list = isinstance(kind.type if isinstance(kind, NonNullTypeNode) else kind, ListTypeNode)
            if is_list and isinstance(given, list) and len(given) > MANY:
                name = variable.variable.name.value
                raise GraphQLError(f"The list ${name} has {len(given)} values; the maximum is {MANY}.", variable)


def _shown(count: int) -> str:
    """Return a number as text; fragments can make it too long to print."""
    return str(count) if count < 10**_MOST_DIGITS else f"more than {10**_MOST_DIGITS}"


def _times(node: FieldNode) -> int:
    """Return how often a field's content may be repeated: the value of ``first``; a variable counts as the maximum."""
    given = next((argument.value for argument in node.arguments or () if argument.name.value == "first"), None)
    if given is None:
        return _LENGTHS.get(node.name.value, 1)
    if not isinstance(given, IntValueNode) or len(given.value) > _MOST_DIGITS:
        return MANY
    return min(max(int(given.value), 1), MANY)  # a negative one is refused later, and must not make up for others


class TextOnly(ValidationRule):
    """Refuses an operation with invalid text; variables are checked with the request."""

    def enter_string_value(self, node: StringValueNode, *_: Any) -> None:
        """Check one text."""
        if fault := text_fault(node.value):
            self.report_error(GraphQLError(fault, node))


def parsed(query: str, variables: Mapping[str, Any], limits: GraphqlSettings) -> DocumentNode:
    """Parse a request that is not too large.

    Raises:
        GraphQLError: it is too large, or not GraphQL.
    """
    check_text(query)
    document = parse(query, max_tokens=limits.tokens)
    check_size(document, limits)
    check_lists(document, variables)
    return document


class Limits(SchemaExtension):
    """Refuses requests that are too large, before they are parsed and before they are validated."""

    def on_operation(self) -> Iterator[None]:
        """Add a rule to the validation."""
        self.execution_context.validation_rules += (TextOnly,)
        yield

    def on_parse(self) -> Iterator[None]:
        """Parse the request, or store the error: raising it here would close a WebSocket."""
        context = self.execution_context
        try:
            context.graphql_document = parsed(context.query or "", context.variables or {}, self._limits)
        except GraphQLError as error:
            context.graphql_document = _nothing(context.operation_name)
            context.pre_execution_errors = [error]
        yield

    @property
    def _limits(self) -> GraphqlSettings:
        context = self.execution_context.context
        caller = context["caller"] if isinstance(context, dict) else context
        limits = caller.services.graphql
        assert isinstance(limits, GraphqlSettings)  # noqa: S101 - Services say so
        return limits


def _nothing(name: str | None) -> DocumentNode:
    """Return a placeholder for a refused request."""
    named = None if name is None else NameNode(value=name)
    nothing = SelectionSetNode(selections=())
    return DocumentNode(
        definitions=(OperationDefinitionNode(operation=OperationType.QUERY, name=named, selection_set=nothing),)
    )


class Ending(SchemaExtension):
    """Cancels a request after its deadline, at the next field."""

    def resolve(
        self, _next: Callable[..., Any], root: Any, info: GraphQLResolveInfo[Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Resolve one field; a mutation that has started is always completed, even if nobody waits for its answer."""
        if info.path.prev is not None or info.operation.operation is not OperationType.MUTATION:
            info.context.deadline.check()
        return _next(root, info, *args, **kwargs)
