"""Read a YAML or JSON text into a document; every error becomes a problem with a position. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from calve.definition.document import Mark, Node
from calve.definition.problems import Problems
from calve.definition.syntax.composer import Composer, Halted
from calve.definition.syntax.json_reader import compose_json
from calve.definition.syntax.yaml_reader import compose_yaml

MAX_BYTES = 1_000_000

_NOT_PRINTABLE = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read(text: str | bytes, *, name: str, problems: Problems, most: int | None = None) -> Node | None:
    """Return the document in a YAML or JSON text; None if it cannot be read.

    ``name`` is that of the file, if there is one: a file ``.json`` is JSON. A document that is
    returned may still have problems: those of single values. A text that would have
    more than ``most`` bytes as JSON is not read to its end.
    """
    try:
        cleaned = _cleaned(text)
    except Halted as halted:
        halted.add_to(problems)
        return None
    done = _chosen(cleaned, most, is_json=name.lower().endswith(".json"))
    problems.found.extend(done.problems.found)
    if done.halted:
        done.halted.add_to(problems)
    return done.root


@dataclass(frozen=True, slots=True)
class _Reading:
    """The result of reading a text as YAML or as JSON."""

    problems: Problems
    root: Node | None = None
    halted: Halted | None = None

    @property
    def broken_at(self) -> Mark | None:
        """The position of the syntax error, if there is one."""
        return self.halted.reached if self.halted and self.halted.code == "syntax" else None


def _cleaned(text: str | bytes) -> str:
    start = Mark(1, 1)
    # The length is checked first, so that a huge text is not encoded.
    if len(text) > MAX_BYTES or len(_encoded(text)) > MAX_BYTES:
        raise Halted("too_large", f"the text has more than {MAX_BYTES} bytes", start, hint="split it")
    # Every line break becomes \n, also inside texts, as YAML specifies.
    cleaned = _decoded(text).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if found := _NOT_PRINTABLE.search(cleaned):
        message = f"the character U+{ord(found[0]):04X} is not allowed in a text"
        raise Halted("character", message, _mark_at(cleaned[: found.start()]), hint="remove it")
    if not cleaned.strip():
        raise Halted("empty", "the text is empty", start)
    return cleaned


def _encoded(text: str | bytes) -> bytes:
    # Lone surrogates are refused later, as characters, with their position.
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def _decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        mark = _mark_at(text[: error.start].decode())
        message = f"the byte 0x{text[error.start]:02x} is not UTF-8"
        raise Halted("not_utf8", message, mark, hint="save the file as UTF-8") from None


def _mark_at(before: str) -> Mark:
    return Mark(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _chosen(text: str, most: int | None, *, is_json: bool) -> _Reading:
    if is_json:
        return _reading(text, most, compose_json)
    if not text.lstrip().startswith(("{", "[")):
        return _reading(text, most, compose_yaml)
    as_json = _reading(text, most, compose_json)
    if as_json.broken_at is None:
        return as_json
    as_yaml = _reading(text, most, compose_yaml)
    if as_yaml.broken_at is None:
        return as_yaml
    # The syntax that got further is probably the intended one.
    return as_yaml if _order(as_yaml.broken_at) > _order(as_json.broken_at) else as_json


def _order(mark: Mark) -> tuple[int, int]:
    return mark.line, mark.column


def _reading(text: str, most: int | None, compose: Callable[[str, Composer], None]) -> _Reading:
    composer = Composer(Problems(), most)
    try:
        compose(text, composer)
    except Halted as halted:
        return _Reading(composer.problems, halted=halted)
    if composer.root is None:
        return _Reading(composer.problems, halted=Halted("empty", "the text contains no document", Mark(1, 1)))
    return _Reading(composer.problems, composer.root)
