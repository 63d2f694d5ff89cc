"""docs/howto/use-the-client.md names methods that the client has."""

import re
from pathlib import Path

from calve.client import Client

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "use-the-client.md"


def test_the_page_names_methods_of_the_client() -> None:
    """In its table of methods that are not operations."""
    _, _, table = PAGE.read_text("utf-8").partition("| method | does |")
    rows = table.partition("\n\n")[0].splitlines()[2:]
    names = {name for row in rows for name in re.findall(r"`(\w+)", row.split(" | ")[0])}
    assert len(names) > 20
    assert not [name for name in sorted(names) if not hasattr(Client, name)]
