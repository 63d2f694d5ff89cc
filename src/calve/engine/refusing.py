"""The error of an action that cannot be done now, which says what can."""

from collections.abc import Iterable

from calve.engine.actions import Action
from calve.errors import ActionRefused


def refuse(what: str, action: Action, status: str, possible: Iterable[Action]) -> ActionRefused:
    """Return the error."""
    names = [each.value for each in possible]
    return ActionRefused(
        f"{what} is {status}: {action} is not possible.",
        remedy=f"Possible: {', '.join(names)}." if names else "Nothing can be done with it in this state.",
        status=status,
        action=action.value,
        possible=names,
    )
