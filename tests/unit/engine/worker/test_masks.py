"""Stars for secrets, however programs print them."""

import base64
import html
import json
import shlex
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from calve.engine.worker import Mask
from calve.steps.processes.streams import Output

SECRETS = (
    "hunter2-Zq9",
    'pass "word" + ü/1 <&\'=>',
    "s3cr3t/+==",
    "ключ-от-двери",
    "line one\nline two\n",
    "$(rm) `x` \\n 💧",
)
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": json.dumps,
    "JSON with letters": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON twice": lambda text: json.dumps(json.dumps(text)),
    "JSON with letters twice": lambda text: json.dumps(json.dumps(text, ensure_ascii=False), ensure_ascii=False),
    "JSON of PHP": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON of Java": lambda text: json.dumps(text).translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&='"}),
    "repr": repr,
    "repr of bytes": lambda text: repr(text.encode()),
    "shell": shlex.quote,
    "URL": quote,
    "URL with slashes": lambda text: quote(text, safe=""),
    "URL of a form": quote_plus,
    "URL in small letters": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "URL, every letter": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "HTML": html.escape,
    "HTML without quotes": lambda text: html.escape(text, quote=False),
    "XML": lambda text: html.escape(text).replace("&#x27;", "&apos;"),
    "XML in ASCII": lambda text: html.escape(text, quote=False).encode("ascii", "xmlcharrefreplace").decode(),
    "decimal entities": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(letter):x};" for letter in text),
    "entities in capitals": lambda text: "".join(f"&#x{ord(letter):X};" for letter in text),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal in capitals": lambda text: text.encode().hex().upper(),
    "hexadecimal of UTF-16": lambda text: text.encode("utf-16-le").hex(),
    "escapes of C": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "UTF-16, little end first": lambda text: text.encode("utf-16-le").decode("utf-8", "replace"),
    "UTF-16, big end first": lambda text: text.encode("utf-16-be").decode("utf-8", "replace"),
    "UTF-16 in a log": lambda text: text.encode("utf-16-le").decode("utf-8", "replace").replace("\0", "\ufffd"),
    "UTF-16 in JSON": lambda text: json.dumps(text.encode("utf-16-le").decode("utf-8", "replace")),
    "repr of UTF-16": lambda text: repr(text.encode("utf-16-be")),
    "Base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_secret_is_hidden_in_every_form(secret: str, form: Callable[[str], str]) -> None:
    """Also between other texts, and beside another secret."""
    mask = Mask.of([secret, "another one"])
    printed = form(secret)
    masked = mask(f"before {printed} after, another one")
    assert printed.strip("\"'\0\ufffd") not in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after, ***")
    assert mask.is_in(printed)
    assert "***" in masked.removesuffix("***")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_base64_of_something_that_holds_a_secret_does_not_show_it(
    secret: str, encode: Callable[[bytes], bytes], encoding: str
) -> None:
    """At each of the three places, whatever stands around it, with and without padding."""
    mask = Mask.of([secret])
    data = secret.encode(encoding)
    for before in range(6):
        for after in range(6):
            printed = encode(b"user:x"[:before] + data + b"@host1"[:after]).decode()
            for shown in (printed, printed.rstrip("=")):
                masked = mask(f"Basic {shown}!")
                assert "***" in masked
                assert len(masked) <= len("Basic ***!") + 2 + (before + after) * 4 // 3 + 4


@pytest.mark.parametrize("width", [64, 76])
def test_base64_that_is_wrapped_does_not_show_a_secret(width: int) -> None:
    """Wherever the line ends."""
    secret = "hunter2-Zq9-and-a-little-more"
    mask = Mask.of([secret])
    for before in range(width):
        printed = base64.b64encode(b"x" * before + secret.encode() + b"y" * 200).decode()
        wrapped = "\n".join(printed[at : at + width] for at in range(0, len(printed), width))
        masked = mask(f"{wrapped}\n")
        assert masked.count("***") == 1
        assert len(masked.replace("\n", "")) <= len(printed) - len(secret) * 8 // 6 + len("***") + 2


def _masked_into(logged: list[str], mask: Mask) -> Callable[[str], None]:
    return lambda text: logged.append(mask(text))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_secret_that_comes_in_pieces_is_hidden(form: Callable[[str], str]) -> None:
    """Wherever one write ends and the next begins."""
    secret = "hunter2-Zq9 ü"
    mask = Mask.of([secret])
    printed = f"it is {form(secret)}.\n".encode()
    for at in range(len(printed)):
        logged: list[str] = []
        output = Output(_masked_into(logged, mask), mask)
        output.feed("O", printed[:at])
        output.feed("O", printed[at:])
        output.close()
        assert "***" in "".join(logged)
        assert form(secret).strip("\"'\0") not in "".join(logged)


def test_what_holds_no_secret_stays_as_it_is() -> None:
    """Whatever it looks like."""
    mask = Mask.of(["hunter2-Zq9", "abc"])
    for text in ("", "plain", "a\nb\n", "%20 &amp; \\n \0 \ufffd", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", "0" * 100):
        assert mask(text) == text
        assert not mask.is_in(text)


def test_nothing_is_hidden_where_there_is_no_secret() -> None:
    """Nor is an empty one a secret."""
    assert Mask()("any text, of any length whatsoever") == "any text, of any length whatsoever"
    assert Mask.of(["", ""])("any text, of any length whatsoever") == "any text, of any length whatsoever"


def test_the_longest_of_several_secrets_is_hidden_first() -> None:
    """So that none shows behind another."""
    assert Mask.of(["abc", "abc123"])("abc123 abc") == "*** ***"


def test_short_lines_of_a_secret_are_no_secrets() -> None:
    """They stand in too many other texts."""
    mask = Mask.of(["first line\nend\n"])
    assert mask("the first line") == "the ***"
    assert mask("in the end") == "in the end"


def test_a_very_long_secret_is_hidden_too() -> None:
    """As it is, and in Base64 that is not wrapped."""
    secret = "".join(chr(65 + n * 7 % 50) for n in range(20_000))
    mask = Mask.of([secret])
    assert mask(f"<{secret}>") == "<***>"
    assert mask(f"<{base64.b64encode(secret.encode()).decode()}>") == "<***>"
