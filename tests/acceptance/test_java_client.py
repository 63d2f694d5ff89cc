"""The Java client: its own tests, run by Maven, against a real server with a real worker."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import maven
from tests.engines import Playground, live
from tests.scope import in_ci
from tests.servers import site_on

from calve.settings import Settings, load
from calve.store import open_store

SOURCE = Path(__file__).parents[2] / "clients" / "java"
RESULTS = "target/surefire-reports/TEST-dev.calve.client.ServerTest.xml"


@pytest.mark.parametrize("maven_of", in_ci([maven.command], otherwise=[maven.command, maven.fetched]))
def test_what_is_described_in_java_runs_on_a_server(
    maven_of: Callable[[Settings, Path], list[str]], tmp_path: Path
) -> None:
    """Push, start, wait and mistakes, through the builder and the client.

    With ``make test-all`` also as on a machine without Maven.
    """
    project = shutil.copytree(SOURCE, tmp_path / "java", ignore=shutil.ignore_patterns("target"))
    url = f"sqlite:///{tmp_path}/state.db"
    with open_store(url) as store:
        playground = Playground(store, url, tmp_path / "attempts")
        with site_on(playground) as site, live(playground):
            said = subprocess.run(
                [*maven_of(load(tmp_path), project), "--quiet", "--batch-mode", "test"],
                cwd=project,
                env={**os.environ, "CALVE_URL": site.url},  # noqa: TID251 - handed on
                capture_output=True,
                text=True,
                check=False,
            )
    assert said.returncode == 0, said.stdout + said.stderr
    assert 'tests="3" errors="0" skipped="0" failures="0"' in (project / RESULTS).read_text()
