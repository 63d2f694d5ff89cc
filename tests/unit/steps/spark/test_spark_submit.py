"""Applications, with a program in the place of spark-submit."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.programs import workspace
from tests.unit.steps.spark.fake import install

from calve.engine import Outcome, State
from calve.errors import StepFailed
from calve.settings import Settings, load
from calve.steps.spark import spark_submit
from calve.steps.spark.progress import Progress
from calve.steps.spark.spark_submit import Submission, error_lines

SHOW = 'echo "args: ${@:3}"; cat "$2"; stat -c "mode: %a" "$(dirname "$2")"'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return the settings of a project with a program and a jar."""
    for name in ("job.py", "more.jar", "lib.zip"):
        (tmp_path / name).touch()
    return load(tmp_path, {"CALVE_SPARK__MASTER": "local[2]"})


def _run(settings: Settings, config: dict[str, Any], branch: str = "") -> tuple[Outcome, str]:
    context = FakeContext(settings.project)
    submission = Submission(settings, workspace(settings.project), config)
    return submission.run(context, branch)[0], context.text


def test_an_application_finds_the_lake_its_files_and_its_branch(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All in a file that nobody else can read."""
    project = settings.project
    install(project, SHOW, monkeypatch)
    config = {
        "application": "job.py",
        "args": ["a b", 3],
        "jars": ["more.jar"],
        "py_files": ["lib.zip"],
        "packages": ["g:a:1"],
        "namespace": "db",
        "conf": {"spark.sql.ansi.enabled": False},
    }
    outcome, said = _run(settings, config, "b1")
    assert outcome.state is State.DONE
    assert f"args: {project}/job.py a b 3" in said
    assert "mode: 700" in said
    for line in (
        "spark.sql.defaultCatalog=lake",
        "spark.master=local[2]",
        f"spark.jars={project}/iceberg.jar,{project}/more.jar",
        "spark.jars.packages=g:a:1",
        f"spark.submit.pyFiles={project}/lib.zip",
        "spark.sql.ansi.enabled=false",
        "spark.wap.branch=b1",
        "spark.sql.catalog.lake.default-namespace=db",
        "spark.sql.iceberg.snapshot-property.calve.attempt=0195-attempt",
    ):
        assert line in said.splitlines()


def test_a_jar_is_run_by_its_class_on_the_master_of_the_step(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step's master wins over that of the settings."""
    install(settings.project, SHOW, monkeypatch)
    config = {"jar": "more.jar", "main_class": "x.Main", "master": "spark://m:7077", "deploy_mode": "cluster"}
    _, said = _run(settings, config)
    assert f"args: --class x.Main {settings.project}/more.jar" in said
    assert "spark.master=spark://m:7077" in said
    assert "spark.submit.deployMode=cluster" in said
    assert "spark.eventLog" not in said


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        ("exit 1", State.USER_ERROR),
        ("exit 52", State.PLATFORM_ERROR),
        ("exit 137", State.PLATFORM_ERROR),
        ("kill -9 $$", State.PLATFORM_ERROR),
    ],
)
def test_an_application_that_was_killed_may_be_run_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, ending: str, state: State
) -> None:
    """52 is how Spark ends without memory."""
    install(settings.project, f"echo 'ValueError: no' >&2; {ending}", monkeypatch)
    outcome, _ = _run(settings, {"application": "job.py"})
    assert (outcome.state, "ValueError: no" in outcome.message) == (state, True)


def test_a_program_that_ended_on_another_branch_runs_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end was that of a worker that died before it could publish; the new branch is empty."""
    install(settings.project, f"echo once >> {settings.project}/runs", monkeypatch)
    submission = Submission(settings, workspace(settings.project), {"application": "job.py"})
    context = FakeContext(settings.project)
    for branch in ("b1", "b2", ""):
        assert submission.run(context, branch)[0].state is State.DONE
        context = context.again()
    assert (settings.project / "runs").read_text().split() == ["once"] * 3
    assert submission.run(context, "")[0].state is State.DONE
    assert (settings.project / "runs").read_text().split() == ["once"] * 3


def test_an_event_log_that_the_user_sets_is_left_alone(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nobody tells here what was read."""
    install(settings.project, SHOW, monkeypatch)
    _, said = _run(settings, {"application": "job.py", "conf": {"spark.eventLog.dir": "s3://logs"}})
    assert [line for line in said.splitlines() if "eventLog" in line] == ["spark.eventLog.dir=s3://logs"]


def test_an_application_cannot_run_on_a_connect_server(settings: Settings) -> None:
    """What could is named."""
    with pytest.raises(StepFailed, match="needs a master") as failed:
        Submission(settings, workspace(settings.project), {"application": "job.py", "remote": "sc://h"})
    assert failed.value.context["state"] == State.FATAL_ERROR


def test_the_error_is_told_out_of_the_frames_around_it() -> None:
    """Of Python and of Java."""
    lines = ["Traceback (most recent call last):", '  File "x"', "ValueError: no", "\tat java.lang.X", "INFO done"]
    assert error_lines(lines) == "ValueError: no"


WORKING = """
here=$(sed -n 's/^spark.eventLog.dir=file:\\/\\///p' "$2")
mkdir -p "$here/eventlog_v2_x"
echo '{"Event":"SparkListenerJobStart","Job ID":0,"Stage IDs":[0,1],"Properties":{}}' > "$here/eventlog_v2_x/events_1_x"
until [ -e "$here/../told" ]; do sleep 0.02; done
"""


def test_an_application_tells_how_far_it_has_come(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its event log, while it works."""
    install(settings.project, WORKING, monkeypatch)
    monkeypatch.setattr(spark_submit, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(spark_submit, "Progress", partial(Progress, every=0.0))

    class Telling(FakeContext):
        def log(self, text: str) -> None:
            super().log(text)
            (self.folder / "told").touch()

    context = Telling(settings.project)
    submission = Submission(settings, workspace(settings.project), {"application": "job.py"})
    assert submission.run(context, "")[0].state is State.DONE
    assert context.text == "-- progress: stage 1 of 2\n"
