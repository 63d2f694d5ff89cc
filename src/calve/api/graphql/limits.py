"""How much one request may ask for: depth, fields, and what they cost."""

from collections.abc import Callable
from typing import Any

from graphql import (
    ExecutableDefinitionNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    StringValueNode,
    ValidationContext,
    ValidationRule,
)
from strawberry.extensions import AddValidationRules, MaxAliasesLimiter, MaxTokensLimiter, QueryDepthLimiter
from strawberry.extensions.base_extension import SchemaExtension

from calve.texts import text_fault

DEPTH = 10
TOKENS = 2_000
ALIASES = 20
COST = 5_000
"""The number of fields that an answer may have, if every list is as long as was asked for."""
FEW, MANY = 20, 200
"""How long a list is where nothing is said, and at most."""
LOG = 65_536
"""How many bytes of a log are given, its end: one answer may hold those of many steps."""
_WITHIN = 30
"""The deepest nesting that is looked at; QueryDepthLimiter refuses it in any case."""


class CostLimiter(ValidationRule):
    """Refuses an operation whose answer could be too large."""

    def enter_operation_definition(self, node: OperationDefinitionNode, *_: Any) -> None:
        """Add up what an operation asks for."""
        cost = _cost(self.context, node.selection_set, 0)
        if cost > COST:
            self.report_error(
                GraphQLError(
                    f"This asks for up to {cost} fields; at most {COST} are given. Ask for shorter lists.", node
                )
            )


class TextOnly(ValidationRule):
    """Refuses an operation that holds something else than text; variables are checked with the request."""

    def enter_string_value(self, node: StringValueNode, *_: Any) -> None:
        """Look at one text."""
        if fault := text_fault(node.value):
            self.report_error(GraphQLError(fault, node))


def _cost(context: ValidationContext, selected: SelectionSetNode | None, depth: int) -> int:
    if selected is None or depth > _WITHIN:
        return 0
    total = 0
    for node in selected.selections:
        match node:
            case FieldNode():
                total += 1 + _times(node) * _cost(context, node.selection_set, depth + 1)
            case InlineFragmentNode():
                total += _cost(context, node.selection_set, depth + 1)
            case FragmentSpreadNode():
                total += _cost(context, _fragment(context, node.name.value), depth + 1)
        if total > COST:
            return total  # enough: a fragment could be named many times over
    return total


def _fragment(context: ValidationContext, name: str) -> SelectionSetNode | None:
    found: FragmentDefinitionNode | ExecutableDefinitionNode | None = context.get_fragment(name)
    return found.selection_set if found is not None else None


def _times(node: FieldNode) -> int:
    """Return how often what is inside a field may come: as ``first`` says; a variable may say anything."""
    given = next((argument.value for argument in node.arguments or () if argument.name.value == "first"), None)
    if given is None:
        return FEW if node.name.value in _LISTS else 1
    return min(int(given.value), MANY) if isinstance(given, IntValueNode) else MANY


_LISTS = frozenset({"workflows", "instances", "signals", "captures", "checkpoints", "steps", "runs", "versions"})
"""The fields that give lists."""


def extensions() -> list[Callable[[], SchemaExtension]]:
    """Return what limits requests."""
    return [
        lambda: QueryDepthLimiter(max_depth=DEPTH),
        lambda: MaxTokensLimiter(max_token_count=TOKENS),
        lambda: MaxAliasesLimiter(max_alias_count=ALIASES),
        lambda: AddValidationRules([CostLimiter, TextOnly]),
    ]
