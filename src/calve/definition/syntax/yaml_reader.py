"""Read YAML with the event parser of PyYAML, and explain its syntax errors."""

import re
from typing import Any

import yaml

from calve.definition.document import Mark
from calve.definition.syntax.composer import MAX_KEY, Composer, Halted, Unsupported

_MESSAGES: tuple[tuple[str, str, str], ...] = (
    # a part of the message of PyYAML or libyaml, our message, a hint
    ("tab character", "the line is indented with a tab", "indent with spaces"),
    (
        "mapping values are not allowed",
        "a colon and a space are not expected here",
        "quote the text if they belong to it; otherwise check the indentation of this line and the one above",
    ),
    (
        "could not find expected ':'",
        "this line is neither a key with a colon nor part of the value above",
        "write key: value",
    ),
    (
        "sequence entries are not allowed",
        "a list cannot start with - on this line",
        "start it on a new line, or write [a, b]",
    ),
    ("',' or ']'", "this list is not continued or closed: expected , or ]", ""),
    (
        "',' or '}'",
        "this mapping is not continued or closed: expected , or }",
        "quote the text if a , or a brace belongs to it",
    ),
    ("unexpected end of stream", "this text in quotes is not closed", "a quote inside single quotes is written twice"),
    (
        "unknown escape character",
        "a backslash in double quotes starts an unknown escape",
        "use single quotes if you mean a backslash",
    ),
    ("invalid Unicode character escape", "this escape is not a valid character", ""),
    ("node content", "a value is expected here", "quote the text if these characters belong to it"),
    ("undefined tag handle", "tags are not allowed", "quote the text if the ! belongs to it"),
    ("document start>", "the document ends before this", ""),
    ("'-' indicator", "this does not continue the list above", "check the indentation"),
    (
        "expected key",
        "this does not continue the mapping above",
        "check the indentation, and the quotes on this line",
    ),
    ("<block end>", "this does not continue the value above", "check the indentation, and the quotes on this line"),
)
_BEGUN = re.compile(r"flow|quoted|an alias|an anchor")
_TAB = re.compile(r" *\t")
_CONDITION = re.compile(r"[\s-]*IF\s", re.IGNORECASE)
_TIGHT_COLON = re.compile(r"[\s-]*(?P<key>[A-Za-z_][\w.-]*):(?P<value>[^\s:/].*)")
_COLON_FAULTS = ("mapping values", "expected ':'")


def explain(text: str, error: Any) -> Halted:
    """Return a readable message, and a hint, for a syntax error of PyYAML."""
    lines = text.split("\n")
    reached = _place(error.problem_mark, lines)
    mark = _place(error.context_mark, lines) if _is_clearer_where_it_began(text, error) else reached
    line, above = lines[mark.line - 1], lines[mark.line - 2] if mark.line > 1 else ""
    message, hint = _said(error.problem, line[mark.column - 1 : mark.column])
    hint = _hinted(error.problem, line, above, mark.column) or hint
    return Halted("syntax", message, mark, hint=hint, reached=reached)


def _place(found: Any, lines: list[str]) -> Mark:
    if found.line == len(lines):
        # libyaml counts one line more if the text does not end with a line break.
        return Mark(len(lines), len(lines[-1]) + 1)
    return Mark(found.line + 1, found.column + 1)


def _is_clearer_where_it_began(text: str, error: Any) -> bool:
    if not (error.context_mark and _BEGUN.search(error.context)):
        return False
    is_at_end = error.problem_mark.index >= len(text.rstrip())
    return is_at_end or "alphabetic or numeric" in error.problem


def _said(words: str, character: str) -> tuple[str, str]:
    if "cannot start any token" in words and character == "\t":
        words = "tab character"
    elif "cannot start any token" in words or "alphabetic or numeric" in words:
        return f"a value cannot start with {character} unless it is quoted", f"write '{character}…'"
    for part, message, hint in _MESSAGES:
        if part in words:
            return message, hint
    return words, ""


def _hinted(words: str, line: str, above: str, column: int) -> str:
    if _TAB.match(line):
        return "indent with spaces"
    if not any(part in words for part in _COLON_FAULTS):
        return ""
    if _CONDITION.match(line):
        return "quote the whole condition: 'IF …': next"
    if column > MAX_KEY:
        return f"a key has at most {MAX_KEY} characters"
    for suspect in (line, above):
        if tight := _TIGHT_COLON.fullmatch(suspect):
            return f"a space may be missing after the colon of {tight['key']}"
    return ""


# Only the events of this loader are used: it never constructs objects.
_PARSER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TAG_SHOWN = 100
# Line breaks to YAML 1.1 and so to its parsers, characters like others to YAML 1.2; some parsers skip the last.
_DOUBTFUL = re.compile("[\x85\u2028\u2029\ufeff]")


def compose_yaml(text: str, composer: Composer) -> None:
    """Feed the only document of a text to a composer."""
    if found := _DOUBTFUL.search(text):
        raise _refusal(text, found.start())
    documents = 0
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    hint = "put each into a separate file"
                    raise Halted("several_documents", "a second document starts here", _mark(event), hint=hint)
            elif isinstance(event, yaml.NodeEvent):
                _feed(event, composer)
            elif isinstance(event, yaml.CollectionEndEvent):
                composer.end()
    except yaml.MarkedYAMLError as error:
        raise explain(text, error) from error


def _feed(event: Any, composer: Composer) -> None:
    mark = _mark(event)
    match event:
        case yaml.AliasEvent():
            composer.alias(str(event.anchor), mark)
            return
        case yaml.ScalarEvent():
            _refuse_properties(event, mark, composer)
            composer.scalar(event.value, mark, is_plain=not event.style)
        case yaml.SequenceStartEvent():
            _refuse_properties(event, mark, composer)
            composer.begin([], mark)
        case _:
            _refuse_properties(event, mark, composer)
            composer.begin({}, mark)


def _refuse_properties(event: Any, mark: Mark, composer: Composer) -> None:
    if event.anchor is not None:
        hint = "write the value out where it is needed"
        composer.refuse(mark, Unsupported("anchor", f"the anchor &{event.anchor} is not supported", hint))
    if event.tag is not None:
        name = event.tag.replace("tag:yaml.org,2002:", "!!")
        hint = "remove it; quote a value that is a text"
        composer.refuse(mark, Unsupported("tag", f"the tag {name[:_TAG_SHOWN]} is not allowed", hint))


def _refusal(text: str, offset: int) -> Halted:
    code = ord(text[offset])
    mark = Mark(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
    message = f"the character U+{code:04X} means different things to different readers of YAML"
    return Halted("character", message, mark, hint=f'write "\\u{code:04x}" in double quotes, or remove it')


def _mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)
