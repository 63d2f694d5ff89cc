"""What a reader copies from the README and the tutorials works, and shows what the page shows."""

import socket
import sys
from pathlib import Path

import pytest
from tests.transcripts import Reader, shell_environment

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorial").glob("*.md"))]
LEFT_OUT = {
    "make demo": "test_demo.py runs what it calls",
    "make test": "runs this test",
    "pip install calve": "test_wheel.py installs the wheel; here calve is installed already",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_works_as_shown(page: Path, connect_url: str, tmp_path: Path) -> None:
    """All console blocks of the page, in order, in an empty folder; those of the README with a Spark of their own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**shell_environment(Path(sys.executable).parent), "CALVE_SERVER__PORT": str(port)}
    if page.stem != "README":  # a Spark for each command takes most of the time, and the README shows that it works
        environment["CALVE_SPARK__REMOTE"] = connect_url
    reader = Reader(tmp_path, environment, {"127.0.0.1:8765": f"127.0.0.1:{port}"})
    assert reader.follow(page.read_text(encoding="utf-8"), leaving_out=LEFT_OUT) > 10
