"""Text of several SQL statements, taken apart. Pure."""

import re

# What may hold a semicolon that ends nothing. r'…' knows no escapes; comments nest, and are followed by hand.
_TOKEN = re.compile(
    r"""
    (?<!\w)[rR]'[^']*' | (?<!\w)[rR]"[^"]*"
    | '(?:\\.|''|[^'\\])*' | "(?:\\.|""|[^"\\])*" | `(?:``|[^`])*`
    | (?P<line>--[^\n]*) | (?P<block>/\*) | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)


_DOLLAR = re.compile(r"\$(?:(?P<escaped>\$)|\{)")


def reference_index(text: str) -> int | None:
    """Return where the first ``${`` is that is not written ``$${``; None if there is none."""
    return next((found.start() for found in _DOLLAR.finditer(text) if not found["escaped"]), None)


def unescaped(text: str) -> str:
    """Return a text in which ``$${`` has become ``${``."""
    return text.replace("$${", "${")


def split(text: str) -> list[str]:
    """Return the statements, without those that are only blanks and comments."""
    statements: list[str] = []
    start, at, has_code = 0, 0, False
    while match := _TOKEN.search(text, at):
        has_code = has_code or bool(text[at : match.start()].strip())
        at = match.end()
        if match["end"]:
            statements += [text[start : match.start()].strip()] if has_code else []
            start, has_code = at, False
        elif match["block"]:
            at = _end_of_comment(text, at)
        elif not match["line"]:
            has_code = True
    has_code = has_code or bool(text[at:].strip())
    return statements + ([text[start:].strip()] if has_code else [])


def _end_of_comment(text: str, at: int) -> int:
    """Return where a comment ends whose start is before ``at``."""
    depth = 1
    for match in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(text)
