"""Pages as tests see them: parsed, and checked against the rules for every page."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from calve.access import Permission
from calve.operations import declared

_FOR_ALL = {Permission.PUBLIC, Permission.SIGNED_IN, Permission.READ, Permission.LOGS}
GUARDED = [one for _, one in declared() if not one.is_read and one.policy.permission not in _FOR_ALL]
"""What changes something, and takes more than a viewer has."""
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
_EVALUATED = ("hx-on", "hx-vals:js", "hx-live", "on")
"""What the names of attributes begin with that a browser would evaluate as a script."""


@dataclass
class Element:
    """An element with its attributes; ``text`` is all text inside it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Parsed(HTMLParser):
    """A parsed page."""

    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self, convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that is closed at once, as in SVG."""
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Add text to all elements around it."""
        for element in self._open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements of a tag that have these attributes; ``class_`` stands for class."""
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            one
            for one in self.elements
            if one.tag == tag and all(one.attributes.get(name) == value for name, value in wanted.items())
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        """Return the only such element."""
        (found,) = self.all(tag, **attributes)
        return found

    @property
    def links(self) -> set[str]:
        """The addresses on this server that the page leads to, without fragments."""
        found = {one.attributes.get("href", "") for one in self.elements if one.tag == "a"}
        return {link.partition("#")[0] for link in found if link.startswith("/")}


def parse(text: str) -> Parsed:
    """Return a page, parsed."""
    page = Parsed()
    page.feed(text)
    page.close()
    return page


def check_page(text: str) -> Parsed:
    """Return a page, parsed; fail if it breaks a rule that all pages keep to."""
    page = parse(text)
    assert len(page.all("h1")) == 1, [one.text for one in page.all("h1")]
    ids = [one.attributes["id"] for one in page.elements if "id" in one.attributes]
    assert len(ids) == len(set(ids)), ids
    check_fragment(page)
    return page


def check_fragment(page: Parsed) -> None:
    """Fail if a page holds what its Content-Security-Policy forbids, or what a script would evaluate."""
    for one in page.elements:
        assert one.tag != "style", one
        assert one.tag != "script" or ("src" in one.attributes and not one.text.strip()), one
        for name, value in one.attributes.items():
            assert name != "style", one
            assert not name.startswith(_EVALUATED), one
            assert name == "value" or not re.match(r"\s*(javascript|js):", value), one


def answer_of(response: Any) -> Parsed:
    """Return the page of an answer, checked; it has to be one."""
    assert response.headers["content-type"].startswith("text/html"), response.text
    assert "unsafe" not in response.headers["content-security-policy"]
    return check_page(response.text)
