"""The workflows of the talk run as they were shown."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines import DONE, FATAL_ERROR, Playground, wait_for
from tests.talk_workflows import FIRST, SECOND

from calve.app import open_project
from calve.definition import installed, load
from calve.engine import RunStatus, StepStatus, WorkerOptions
from calve.settings import load as load_settings
from calve.store import open_store

S = StepStatus
RECOVERY = """
Workflow:
  id: example.recovery.wf
  jobs:
    - job: {id: mend, type: NoOp}
"""
TABLES = {"SOURCE_TABLE": "db.source", "TARGET_TABLE": "db.target", "DATE_MINUS_7": "20240101"}
WELL = {
    "normal_workflow": S.SUCCEEDED,
    "check_status": S.SUCCEEDED,
    "recovery": S.UNSATISFIED,
    "re_run": S.UNSATISFIED,
    "end": S.SUCCEEDED,
}
MENDED = {
    "normal_workflow": S.COMPLETED_WITH_ERROR,
    "check_status": S.SUCCEEDED,
    "recovery": S.SUCCEEDED,
    "re_run": S.SUCCEEDED,
    "end": S.SUCCEEDED,
}


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[Playground]:
    """Give an engine that knows the talk's workflows."""
    url = f"sqlite:///{tmp_path}/calve.db"
    with open_store(url) as store:
        playground = Playground(store, url, tmp_path / "attempts")
        for text in (FIRST, SECOND, RECOVERY):
            playground.push(text)
        yield playground
        playground.check()


def test_the_pipeline_runs_its_query(playground: Playground) -> None:
    """With the tables that it was given."""
    run = playground.start("demo.pipeline", params=TABLES)
    assert run.status is RunStatus.SUCCEEDED
    spark = playground.result(run, "job.1", "spark")
    assert isinstance(spark, dict)
    script = spark["script"]
    assert script.startswith("INSERT OVERWRITE TABLE db.target SELECT USER_ID")
    assert "FROM db.source WHERE is_active=true AND DATE_INT > 20240101" in script


def test_remediation_has_nothing_to_do_when_all_goes_well(playground: Playground) -> None:
    """Neither recovery nor the second run begins."""
    run = playground.start("auto.remediation.pipeline", params=TABLES)
    assert run.status is RunStatus.SUCCEEDED
    assert playground.statuses(run) == WELL
    assert playground.script.calls == ["job.1"]


def test_remediation_mends_what_failed_and_runs_it_again(playground: Playground) -> None:
    """The failure is seen by the condition, and the instance succeeds in the end."""
    playground.script.parts["job.1"] = [FATAL_ERROR, DONE]
    run = playground.start("auto.remediation.pipeline", params=TABLES)
    assert run.status is RunStatus.SUCCEEDED
    assert playground.statuses(run) == MENDED
    assert playground.script.calls == ["job.1", "job.1"]
    children = playground.state.instances(workflow_id="demo.pipeline")
    assert [each.status for each in children] == [RunStatus.SUCCEEDED, RunStatus.FAILED]


def test_remediation_that_does_not_help_is_a_failure(playground: Playground) -> None:
    """The second run has no safety net."""
    playground.script.parts["job.1"] = FATAL_ERROR
    run = playground.start("auto.remediation.pipeline", params=TABLES)
    assert run.status is RunStatus.FAILED
    assert playground.statuses(run)["re_run"] is S.FATALLY_FAILED
    playground.script.parts["job.1"] = DONE
    again = playground.restart(run)
    assert again.status is RunStatus.SUCCEEDED
    assert playground.statuses(again) == MENDED


@pytest.mark.parametrize("wanted", [WELL, MENDED], ids=["well", "mended"])
def test_remediation_with_a_real_worker_and_real_programs(tmp_path: Path, wanted: dict[str, StepStatus]) -> None:
    """The pipeline is a shell command here, and recovery puts right what it stumbles over."""
    broken = tmp_path / "broken"
    if wanted is MENDED:
        broken.touch()
    python = sys.executable
    pipeline = f"""
Workflow:
  id: demo.pipeline
  jobs:
    - job:
        id: job.1
        type: Shell
        retry_policy: {{error_retry_limit: 0}}
        shell: {{command: '{python} -c "import os, sys; sys.exit(os.path.exists(sys.argv[1]))" {broken}'}}
"""
    recovery = f"""
Workflow:
  id: example.recovery.wf
  jobs:
    - job: {{id: mend, type: Shell, shell: {{command: rm {broken}}}}}
"""
    with open_project(load_settings(tmp_path, {})) as project:
        engine = project.engine
        for text in (pipeline, recovery, SECOND):
            engine.push(load(text, name="talk", vocabulary=installed()).required())
        run = engine.start("auto.remediation.pipeline").run
        worker = project.worker(options=WorkerOptions(slots=2, tick=0.05, poll=0.1))
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            wait_for(lambda: engine.state.load(run.uuid).run.status.is_terminal)  # type: ignore[union-attr]
        finally:
            worker.end()
            thread.join()
        found = engine.state.load(run.uuid)
        assert found is not None
        assert found.run.status is RunStatus.SUCCEEDED
        assert {attempt.step_id: attempt.status for attempt in found.attempts} == wanted
    assert not broken.exists()
