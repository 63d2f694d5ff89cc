"""Small changes of a value that leave it at its place."""

from calve.definition.document import Node

ANY = "*"
"""In a way: every item of a list or every value of a map."""

LARGEST_NUMBER = 4096
"""In bits; Python refuses to write numbers that are much larger."""


def text_of(node: Node) -> str | None:
    """Return a scalar as text, as YAML and JSON write it; None for what is no scalar."""
    match node.value:
        case bool() as truth:
            return "true" if truth else "false"
        case int() as number if number.bit_length() > LARGEST_NUMBER:
            return None
        case str() | int() | float() as scalar:
            return str(scalar)
        case _:
            return None


def as_text(node: Node) -> Node:
    """Return a number as text: ids and versions that look like numbers are none."""
    text = text_of(node)
    return node if text is None or isinstance(node.value, bool) else node.made(text)


def as_list(node: Node) -> Node:
    """Return a list; a text that stands alone becomes a list of one."""
    return node.made([node]) if isinstance(node.value, str) else node


def items_of(node: Node) -> list[Node]:
    """Return the items of a list, or the one value that stands where a list may stand."""
    return node.value if isinstance(node.value, list) else [node]


def entries_of(node: Node | None) -> dict[str, Node]:
    """Return the entries of a map; none for anything else."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def without_nulls(node: Node) -> Node:
    """Return a map without the entries that are null, which say the same as absent ones."""
    if not isinstance(node.value, dict):
        return node
    return node.made({key: item for key, item in node.value.items() if item.value is not None})


def uppered(node: Node, *ways: str) -> Node:
    """Return a tree whose words at the ends of the ways are in upper case; a way is ``backoff.type`` or ``tags.*``."""
    for way in ways:
        node = _uppered(node, tuple(way.split(".")))
    return node


def _uppered(node: Node, way: tuple[str, ...]) -> Node:
    if not way:
        return node.made(node.value.upper()) if isinstance(node.value, str) else node
    step, rest = way[0], way[1:]
    match node.value:
        case list() as items if step == ANY:
            return node.made([_uppered(item, rest) for item in items])
        case dict() as entries:
            return node.made(
                {key: _uppered(item, rest) if step in {key, ANY} else item for key, item in entries.items()}
            )
        case _:
            return node
