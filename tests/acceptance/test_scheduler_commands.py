"""Workflows that start by themselves: real processes, which are killed and compete."""

import signal
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import create_engine, update
from tests.acceptance.test_engine_commands import Project, finished, opened, wait_for

from calve.engine import Run, RunStatus
from calve.store.tables import workflow

HOUR = 3_600_000
HOURLY = "Trigger: {cron: '@hourly'}\nWorkflow: {id: w, jobs: [{job: {id: a, type: NoOp}}]}\n"


@pytest.fixture(params=["sqlite", "postgres"])
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Project]:
    """Give a project with an hourly workflow that became active three hours ago, unseen by any scheduler."""
    (tmp_path / ".calve").mkdir()
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/.calve/state.db" if is_sqlite else str(request.getfixturevalue("postgres_database"))
    configure(tmp_path, url)
    with opened(tmp_path, url) as project:
        (tmp_path / "w.yaml").write_text(HOURLY)
        assert project.calve("push", str(tmp_path / "w.yaml")).code == 0
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(update(workflow).values(activated_at=workflow.c.activated_at - 3 * HOUR))
        engine.dispose()
        yield project


def configure(folder: Path, url: str, failpoint: str = "") -> None:
    """Write the settings of a project."""
    armed = f'failpoints = "{failpoint}"\n' if failpoint else ""
    (folder / "calve.toml").write_text(f'{armed}[store]\nurl = "{url}"\n')


def instances(project: Project) -> list[Run]:
    """Return the instances, the first one first."""
    return sorted(project.store.engine.instances(workflow_id="w"), key=lambda run: run.instance_id)


def check(project: Project) -> None:
    """Fail unless each of the three hours has started one instance, in order."""
    moments = [run.run_params["RUN_TS"]["value"] for run in instances(project)]
    assert [later - earlier for earlier, later in pairwise(moments)] == [HOUR, HOUR]
    assert moments[0] % HOUR == 0


def ready(project: Project) -> subprocess.Popen[str]:
    """Start a scheduler, and wait until it is at work."""
    process = project.spawn("scheduler")
    assert process.stdout is not None
    assert "is ready" in process.stdout.readline()
    return process


def end(process: subprocess.Popen[str]) -> str:
    """End a process by Ctrl-C, and return what it said."""
    process.send_signal(signal.SIGINT)
    result = finished(process)
    assert result.code == 0, result.err
    return result.out


def test_up_starts_what_is_due_and_carries_it_out(project: Project) -> None:
    """One process is enough: it makes up for what was missed, and ends by Ctrl-C."""
    up = project.spawn("up")
    wait_for(lambda: [run.status for run in instances(project)] == [RunStatus.SUCCEEDED] * 3)
    assert "w 3 SUCCEEDED" in end(up)
    check(project)


@pytest.mark.parametrize("point", ["triggers.synced", "triggers.looked", "triggers.prepared", "triggers.fired"])
def test_a_scheduler_that_is_killed_leaves_all_or_nothing(project: Project, point: str) -> None:
    """B.2-16, with SIGKILL: the next one starts what is left, and nothing again."""
    configure(project.folder, project.url, f"{point}:1:kill")
    assert finished(project.spawn("scheduler")).code == -signal.SIGKILL
    configure(project.folder, project.url)
    scheduler = ready(project)
    wait_for(lambda: len(instances(project)) == 3 and bool(project.store.triggers.next_due()))
    end(scheduler)
    check(project)


def test_on_sqlite_a_second_scheduler_is_refused(project: Project) -> None:
    """B.2-18: a second one is refused; on PostgreSQL both run, and each firing happens once."""
    schedulers = [ready(project)]
    if project.url.startswith("sqlite"):
        refused = finished(project.spawn("scheduler"))
        assert refused.code == 1
        assert f"Process {schedulers[0].pid}" in refused.err
    else:
        schedulers.append(ready(project))
    wait_for(lambda: len(instances(project)) == 3)
    for scheduler in schedulers:
        end(scheduler)
    check(project)


def test_a_push_wakes_a_scheduler(project: Project) -> None:
    """One that sleeps takes over the triggers of what is pushed, by another process too."""
    scheduler = ready(project)
    wait_for(lambda: len(instances(project)) == 3)
    (project.folder / "v.yaml").write_text(HOURLY.replace("id: w", "id: v"))
    assert project.process("push", "v.yaml").code == 0
    wait_for(lambda: project.store.triggers.trigger("v", "time:0") is not None)
    end(scheduler)
