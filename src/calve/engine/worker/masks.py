"""Masks secrets in what programs print: as they are, quoted, escaped or encoded. Pure.

This helps against accidents. It is not a security boundary: a program that is given a secret can print it in another
form.
"""

import html
import json
import re
import shlex
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, quote_plus

from calve.definition.params import HIDDEN

SHORTEST = 6
"""The minimum length of a line of a secret, or of a piece of Base64 with a secret in it, to be masked by itself;
shorter ones occur in too many other texts."""
_LINE = 32
"""The minimum length of the lines into which Base64 is wrapped."""
_WRAPPED = 10_000
"""How long an encoded secret may be to be found where it is wrapped: a pattern is built from it."""
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")
_URLSAFE = str.maketrans("+/", "-_")
_U_ESCAPE = re.compile(r"\\u[0-9a-f]{4}")
_HTML_SAFE = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&='"}
_NUL = "\N{REPLACEMENT CHARACTER}"
"""The replacement of NUL in a log."""
_MARKS = ("\\", "%", "&", "\0", _NUL)
"""Characters that occur in escapes: a text without one of them has no escapes of that kind to search for."""


@dataclass(frozen=True, slots=True)
class Mask:
    """Replaces secrets by stars."""

    plain: tuple[str, ...] = ()
    """Forms searched for in every text, longer ones first, since they may contain shorter ones."""
    escaped: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Forms searched for only in texts with a certain character, by that character."""
    encoded: tuple[str, ...] = ()
    """Base64 and hexadecimal forms, searched for in long words only, also where they are wrapped."""
    words: re.Pattern[str] = re.compile("$^")
    """Matches words long enough to contain an encoded form, with their continuations on the next lines."""

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Self:
        """Return the mask for some secrets."""
        texts = set(secrets) - {""}
        plain = {each for text in texts for each in _plain(text)}
        escapes = {each for text in texts for each in _escaped(text)} - plain
        encoded = {each for text in texts for each in _encoded(text)} - plain
        shortest = min(map(len, encoded), default=_LINE)
        return cls(
            plain=_longest_first(plain | {each for each in escapes if _mark(each) is None}),
            escaped=tuple(
                (mark, found)
                for mark in _MARKS
                if (found := _longest_first(each for each in escapes if _mark(each) == mark))
            ),
            encoded=_longest_first(encoded),
            words=re.compile(rf"[A-Za-z0-9+/_-]{{{min(shortest, _LINE)},}}=*(?:\s*\n\s*[A-Za-z0-9+/_-]+=*)*"),
        )

    def __call__(self, text: str) -> str:
        """Return a text with its secrets masked."""
        for mark, forms in self.escaped:
            if mark in text:
                text = _replaced(text, forms)
        text = _replaced(text, self.plain)
        return self._decoded(text) if self.encoded else text

    def is_in(self, text: str) -> bool:
        """Tell whether a text contains a secret in one of its forms."""
        return self(text) != text

    def _decoded(self, text: str) -> str:
        words = "\n".join("".join(word.split()) for word in self.words.findall(text))
        for form in self.encoded if words else ():
            if form in words:
                text = text.replace(form, HIDDEN)
                text = re.sub(r"\s*".join(map(re.escape, form)), HIDDEN, text) if len(form) < _WRAPPED else text
        return text


def _replaced(text: str, forms: Iterable[str]) -> str:
    for form in forms:
        if form in text:
            text = text.replace(form, HIDDEN)
    return text


def _longest_first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(texts, key=lambda text: (-len(text), text)))


def _mark(form: str) -> str | None:
    """Return a character of an escaped secret that most texts do not have."""
    return next((mark for mark in _MARKS if mark in form), None)


def _plain(secret: str) -> Iterator[str]:
    """Yield a secret, and its lines."""
    yield secret
    yield from (line for line in secret.splitlines() if len(line) >= SHORTEST)


def _escaped(secret: str) -> Iterator[str]:
    """Yield a secret as it is escaped in quoted texts, URLs and HTML."""
    data = secret.encode()
    for once in _json(secret):
        yield once
        yield from _json(once)
    for shell in (shlex.quote(secret), shlex.quote(secret)[1:-1], secret.replace("'", "'\\''")):
        if len(shell) >= len(secret):  # a secret that needs no quotes would lose both its ends
            yield shell
    yield repr(secret)[1:-1]
    yield repr(data)[2:-1]
    yield "".join(f"\\x{byte:02x}" for byte in data)
    for escapes in (
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        "".join(f"%{byte:02X}" for byte in data),
    ):
        yield escapes
        yield re.sub("%..", lambda found: found[0].lower(), escapes)
    yield from _entities(secret)
    for encoding in _ENCODINGS[1:]:
        wide = secret.encode(encoding).decode("utf-8", "replace").strip("\0")
        yield from (wide, wide.replace("\0", _NUL), json.dumps(wide)[1:-1], repr(secret.encode(encoding))[2:-1])


def _json(text: str) -> Iterator[str]:
    """Yield a text as several libraries write it in a JSON string."""
    for dumped in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        for form in (dumped, dumped.replace("/", "\\/"), dumped.translate(_HTML_SAFE)):
            yield form
            yield _U_ESCAPE.sub(lambda found: f"\\u{found[0][2:].upper()}", form)


def _entities(secret: str) -> Iterator[str]:
    """Yield a secret as it is escaped in HTML and XML."""
    named = html.escape(secret, quote=False)
    for apostrophe in ("'", "&#39;", "&#x27;", "&apos;"):
        for quotes in ('"', "&quot;", "&#34;", "&#x22;"):
            form = named.replace("'", apostrophe).replace('"', quotes)
            yield form
            yield form.encode("ascii", "xmlcharrefreplace").decode()
    numbers: tuple[Callable[[int], str], ...] = ("&#{};".format, "&#x{:x};".format, "&#x{:X};".format)
    for number in numbers:
        yield "".join(number(ord(letter)) for letter in secret)
        yield "".join(letter if letter.isalnum() and letter.isascii() else number(ord(letter)) for letter in secret)


def _encoded(secret: str) -> Iterator[str]:
    """Yield a secret in Base64, also within other data, and in hexadecimal digits."""
    for encoding in _ENCODINGS:
        data = secret.encode(encoding)
        for form in (b64encode(data).decode(), *_within_base64(data)):
            yield form
            yield form.translate(_URLSAFE)
            yield form.translate(_URLSAFE).rstrip("=")
        yield data.hex()
        yield data.hex().upper()


def _within_base64(data: bytes) -> Iterator[str]:
    """Yield the Base64 forms of bytes within other data, for each of the three offsets where they can begin.

    The characters at both ends that also encode neighboring bytes are left out.
    """
    for offset in range(3):
        whole = b64encode(bytes(offset) + data + bytes(2)).decode()
        piece = whole[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
        if len(piece) >= SHORTEST:
            yield piece
