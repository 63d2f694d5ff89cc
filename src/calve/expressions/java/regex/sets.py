"""Characters and sets of characters in a regular expression of Java, written as sets of the ``regex`` package."""

import re
from dataclasses import dataclass

DEPTH = 50
SHORTHANDS = {
    "d": "[0-9]",
    "w": "[a-zA-Z0-9_]",
    "s": r"[\x20\t\n\x0b\f\r]",
    "h": r"[\x20\t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]",
    "v": r"[\n\x0b\f\r\x85\u2028\u2029]",
}
SHORTHANDS |= {letter.upper(): f"[^{inner[1:]}" for letter, inner in SHORTHANDS.items()}
_SIMPLE_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\x07", "e": "\x1b"}
_PROPERTIES = {
    "Lower": "[a-z]",
    "Upper": "[A-Z]",
    "ASCII": r"[\x00-\x7f]",
    "Alpha": "[a-zA-Z]",
    "Digit": "[0-9]",
    "Alnum": "[a-zA-Z0-9]",
    "Punct": r"[!-/:-@\[-`{-~]",
    "Graph": "[!-~]",
    "Print": r"[\x20-~]",
    "Blank": r"[\x20\t]",
    "Cntrl": r"[\x00-\x1f\x7f]",
    "XDigit": "[0-9a-fA-F]",
    "Space": SHORTHANDS["s"],
    "LC": r"[\p{Lu}\p{Ll}\p{Lt}]",
    "IsAlphabetic": r"[\p{Alphabetic}]",
    "IsLetter": r"[\p{L}]",
    "IsDigit": r"[\p{Nd}]",
    "IsUppercase": r"[\p{Uppercase}]",
    "IsLowercase": r"[\p{Lowercase}]",
    "IsWhite_Space": r"[\p{White_Space}]",
}
_CATEGORIES = re.findall("[A-Z][a-z]?", "LLuLlLtLmLoMMnMcMeNNdNlNoPPcPdPsPePiPfPoSSmScSkSoZZsZlZpCCcCfCsCoCn")
_PROPERTIES |= {f"{prefix}{name}": rf"[\p{{{name}}}]" for name in _CATEGORIES for prefix in ("", "Is")}
_OF_EITHER_CASE = {"Lower": "Alpha", "Upper": "Alpha", "Lu": "LC", "Ll": "LC", "Lt": "LC"}
_EMPTY_SET = r"[^\x00-\U0010ffff]"
_OCTAL = re.compile("[0-3]?[0-7]{1,2}")
_IGNORED = " \t\n\x0b\f\r#"
_HEX = frozenset("0123456789abcdefABCDEF")


class PatternInvalid(ValueError):
    """The text is not a regular expression, or uses a form that is not supported."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags in ``(?…)``."""

    i: bool = False
    s: bool = False
    m: bool = False
    x: bool = False
    d: bool = False
    u: bool = False


def quoted(character: str) -> str:
    """Return a character, escaped so that it means itself in a set and elsewhere."""
    if character.isascii() and character.isalnum():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class SetReader:
    """Reads a pattern from the left: its characters, escapes and sets."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = Flags()

    def peek(self) -> str:
        """Return the next character, or an empty text at the end; comments are skipped where they are allowed."""
        if self.flags.x:
            self._skip_comments()
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        """Take the next character."""
        character = self.pattern[self.at : self.at + 1]
        if not character:
            raise PatternInvalid(f"Unexpected end of the pattern near index {self.at}")
        self.at += 1
        return character

    def take_if(self, text: str) -> bool:
        """Take a text if it comes next, and return whether it did."""
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def take_until(self, end: str) -> str | None:
        """Take the text up to ``end``, and ``end``; return None if it does not follow."""
        found = self.pattern.find(end, self.at)
        if found < 0:
            return None
        text = self.pattern[self.at : found]
        self.at = found + len(end)
        return text

    def _skip_comments(self) -> None:
        while self.at < len(self.pattern):
            character = self.pattern[self.at]
            if character == "#":
                end = self.pattern.find("\n", self.at)
                self.at = len(self.pattern) if end < 0 else end
            elif character in _IGNORED:
                self.at += 1
            else:
                return

    def quotation(self) -> str:
        r"""Return the text between \Q and \E."""
        quoted = self.take_until("\\E")
        if quoted is None:
            quoted, self.at = self.pattern[self.at :], len(self.pattern)
        return quoted

    def set_escape(self, character: str) -> str | None:
        """Return the set of an escape such as d or p{L}, or None if the escape is not a set."""
        if character not in "pP":
            return SHORTHANDS.get(character)
        name: str | None = self.take()
        if name == "{":
            name = self.take_until("}")
        if name is None:
            raise PatternInvalid(f"Unclosed character family near index {self.at}")
        found = _PROPERTIES.get(_OF_EITHER_CASE.get(name, name) if self.flags.i else name)
        if found is None:
            raise PatternInvalid(f"Unknown character property name {{{name}}} near index {self.at}")
        return found if character == "p" else f"[^{found}]"

    def escaped_character(self, character: str) -> str:
        """Return the character of an escape."""
        match character:
            case "0":
                return self._octal()
            case "x" if self.take_if("{"):
                return self._hexadecimal(self.take_until("}") or "")
            case "x" | "u":
                length = 2 if character == "x" else 4
                digits = self.pattern[self.at : self.at + length]
                self.at += length
                return self._hexadecimal(digits if len(digits) == length else "")
            case "c":
                return chr(ord(self.take()) ^ 64)
            case _ if character in _SIMPLE_ESCAPES:
                return _SIMPLE_ESCAPES[character]
            case _ if character.isascii() and character.isalpha():
                raise PatternInvalid(f"Illegal/unsupported escape sequence \\{character} near index {self.at - 1}")
            case _:
                return character

    def _octal(self) -> str:
        digits = _OCTAL.match(self.pattern, self.at)
        if digits is None:
            raise PatternInvalid("Illegal octal escape sequence")
        self.at = digits.end()
        return chr(int(digits.group(), 8))

    @staticmethod
    def _hexadecimal(digits: str) -> str:
        if not 0 < len(digits) <= 6 or not _HEX.issuperset(digits) or int(digits, 16) > 0x10FFFF:
            raise PatternInvalid("Illegal hexadecimal escape sequence")
        return chr(int(digits, 16))

    def bracketed(self, depth: int, *, is_nested: bool = True) -> str:
        """Read a set after its bracket, or what follows ``&&`` up to the bracket that ends the set around it."""
        if depth > DEPTH:
            raise PatternInvalid("The pattern is nested too deeply")
        is_negative = is_nested and self.take_if("^")
        whole: str | None = None
        found: list[str] = []
        while True:
            character = self._peek_in_class()
            if character == "]" and (found or whole):
                break
            self.take()
            if character == "&" and self.take_if("&"):
                whole = self._intersection(whole, found, depth)
                found = []
            elif whole:
                raise PatternInvalid(f"A set that continues after && and & is not supported near index {self.at}")
            else:
                found.append(self._class_part(character, depth))
        if is_nested:
            self.take()
        whole = whole or f"[{''.join(found)}]"
        return f"[^{whole}]" if is_negative else whole

    def _peek_in_class(self) -> str:
        character = self.pattern[self.at : self.at + 1]
        if self.flags.x and character and character in _IGNORED:
            raise PatternInvalid(f"White space and # in a set are not supported with (?x) near index {self.at}")
        return character

    def _intersection(self, left: str | None, found: list[str], depth: int) -> str:
        """Read the right side of ``&&`` and return what it has in common with the left one."""
        left = left or (f"[{''.join(found)}]" if found else None)
        right: list[str] = []
        while (character := self._peek_in_class()) not in {"]", "&"}:
            is_nested = self.take_if("[")
            if not character:
                raise PatternInvalid(f"Unclosed character class near index {self.at}")
            right.append(self.bracketed(depth + 1, is_nested=is_nested))
        if not left and not right:
            raise PatternInvalid(f"Bad class syntax near index {self.at}")
        if not right and len(found) > 1:
            raise PatternInvalid(f"Nothing after && is not supported near index {self.at}")
        return f"[{left}&&[{''.join(right)}]]" if left and right else left or f"[{''.join(right)}]"

    def _class_part(self, character: str, depth: int) -> str:
        if character == "[":
            return self.bracketed(depth + 1)
        if character == "\\":
            character = self.take()
            if (found := self.set_escape(character)) is not None:
                return found
            if character == "Q":
                return "".join(self._span(one, one) for one in self.quotation()) or _EMPTY_SET
            character = self.escaped_character(character)
        return self._class_range(character)

    def _class_range(self, first: str) -> str:
        ahead = self.pattern[self.at : self.at + 2]
        last = first
        if len(ahead) == 2 and ahead[0] == "-" and ahead[1] not in "[]":
            self.at += 1
            last = self.take()
            if last == "\\":
                last = self.escaped_character(self.take())
            if last < first:
                raise PatternInvalid(f"Illegal character range near index {self.at}")
        return self._span(first, last)

    def _span(self, first: str, last: str) -> str:
        """Return a range of characters, with its ASCII letters in both cases under ``(?i)``."""
        letters = ((max(first, low), min(last, high)) for low, high in (("a", "z"), ("A", "Z")) if self.flags.i)
        others = [(low.swapcase(), high.swapcase()) for low, high in letters if low <= high]
        return "".join(f"{quoted(low)}-{quoted(high)}" for low, high in [(first, last), *others])
