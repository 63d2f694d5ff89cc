"""Definitions and diffs as HTML, with highlighted keys, strings, numbers and comments. Pure.

Lines are parsed one by one, in the form that ``to_yaml`` and ``json.dumps`` write; anything else is shown as it is. All
text is escaped, because a definition may contain anything.
"""

from collections.abc import Iterable, Iterator
from re import compile as pattern

from markupsafe import Markup, escape

LONGEST = 3_000
"""Maximum number of lines that are shown."""
_QUOTED = r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'"""
_YAML = pattern(rf"(\s*(?:[-?] +)*)(?:({_QUOTED}|[^\s\"'#\[{{|>&*!][^:]*?)(:)(?=\s|$))?(\s*)(.*)")
_JSON = pattern(rf"(\s*)(?:({_QUOTED})(:))?(\s*)(.*)")
_PART = pattern(rf"({_QUOTED})|(?<![\w.-])(?:-?\d[\d._eE+-]*|true|false|null)(?![\w.-])")
_BLOCK = pattern(r"[|>][-+0-9]*")
_MARKS = ("[", "{", '"', "'", "]", "}")
"""The first characters of values that may have several parts to highlight."""


def yaml_html(text: str) -> Markup:
    """Return highlighted YAML."""
    return _joined(_yaml_lines(text.splitlines()))


def json_html(text: str) -> Markup:
    """Return highlighted JSON."""
    matches = (_JSON.fullmatch(line) for line in text.splitlines())
    return _joined(_line(*one.groups()) for one in matches if one)


def diff_html(text: str) -> Markup:
    """Return a unified diff, in which a sign and a colour mark added and removed lines."""
    return _joined(_changed(line) for line in text.splitlines())


def left_out(text: str) -> int:
    """Return how many lines of a text are not shown, because it is longer than ``LONGEST``."""
    return max(0, len(text.splitlines()) - LONGEST)


def _joined(lines: Iterable[str]) -> Markup:
    shown = (line for line, _ in zip(lines, range(LONGEST), strict=False))
    return Markup("\n".join(shown))  # noqa: S704 - every line is made of escaped parts


def _yaml_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield highlighted lines of YAML; the lines of a block scalar, indented more than its key, are strings."""
    block: int | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if block is not None and line.strip() and indent <= block:
            block = None
        found = None if block is not None else _YAML.fullmatch(line)
        if found is None:
            yield _text_line(line)
            continue
        yield _line(*found.groups())
        if _BLOCK.fullmatch(found[5]):
            block = indent


def _text_line(line: str) -> str:
    """Return a highlighted line of a block scalar; it may end with a ``#`` comment of the embedded language."""
    code, sign, comment = ("", "", line) if line.lstrip().startswith("#") else line.partition(" #")
    return (_span("string", code) if code else "") + (_span("comment", sign + comment) if comment else "")


def _line(lead: str, key: str | None, colon: str | None, space: str, value: str) -> str:
    named = _span("key", key) + (colon or "") if key else ""
    return f"{lead}{named}{space}{_value(value)}"


def _value(text: str) -> str:
    """Return a highlighted value; a string without quotes is a single part."""
    bare = text.rstrip(",")
    if text.startswith("#"):
        return _span("comment", text)
    if text.startswith(_MARKS) or _BLOCK.fullmatch(text) or _PART.fullmatch(bare):
        return _parts(text)
    return _span("string", text) if text else ""


def _parts(text: str) -> str:
    parts, at = [], 0
    for one in _PART.finditer(text):
        parts += [str(escape(text[at : one.start()])), _span("string" if one[1] else "number", one[0])]
        at = one.end()
    return "".join([*parts, str(escape(text[at:]))])


def _changed(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return _span("comment", line)
    tag = {"+": "ins", "-": "del"}.get(line[:1])
    return f"<{tag}>{escape(line)}</{tag}>" if tag else str(escape(line))


def _span(kind: str, text: str) -> str:
    return f'<span class="code-{kind}">{escape(text)}</span>'
