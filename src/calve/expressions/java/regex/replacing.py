"""Putting something else where a pattern matches."""

from calve.expressions.java.budget import Budget
from calve.expressions.java.regex.matching import Groups, compile_pattern
from calve.expressions.java.regex.nodes import PatternInvalid
from calve.expressions.java.regex.splitting import matches


def replace_all(budget: Budget, text: str, pattern: str, replacement: str | None) -> str:
    r"""Return ``text`` with every match replaced; ``$1`` and ``${name}`` are groups, ``\`` takes the next as is."""
    parts: list[str] = []
    at = size = 0
    for groups in matches(budget, text, pattern):
        for part in (text[at : groups[0]], _expanded(text, pattern, groups, replacement)):
            size += 2 * len(part)
            parts.append(part)
        at = groups[1]
        budget.check_room(size)
    parts.append(text[at:])
    return "".join(parts)


def _expanded(text: str, pattern: str, groups: Groups, replacement: str | None) -> str:
    if replacement is None:
        raise PatternInvalid("the replacement is null")
    if "$" not in replacement and "\\" not in replacement:
        return replacement
    parts: list[str] = []
    at = 0
    while at < len(replacement):
        character = replacement[at]
        at += 1
        if character == "\\":
            if at == len(replacement):
                raise PatternInvalid("character to be escaped is missing")
            parts.append(replacement[at])
            at += 1
        elif character == "$":
            number, at = _group_number(pattern, len(groups) // 2 - 1, replacement, at)
            start, end = groups[2 * number : 2 * number + 2]
            parts.append(text[start:end] if start >= 0 and end >= 0 else "")
        else:
            parts.append(character)
    return "".join(parts)


def _group_number(pattern: str, most: int, replacement: str, at: int) -> tuple[int, int]:
    if replacement.startswith("{", at):
        end = replacement.find("}", at)
        name = replacement[at + 1 : end]
        names = compile_pattern(pattern).names
        if end < 0 or name not in names:
            raise PatternInvalid(f"No group with name {{{name[:100]}}}")
        return names[name], end + 1
    digits = replacement[at : at + 1]
    if not digits or digits not in "0123456789":
        raise PatternInvalid("Illegal group reference")
    number = int(digits)
    if number > most:
        raise PatternInvalid(f"No group {number}")
    at += 1
    while (digit := replacement[at : at + 1]) and digit in "0123456789" and number * 10 + int(digit) <= most:
        number = number * 10 + int(digit)
        at += 1
    return number, at
