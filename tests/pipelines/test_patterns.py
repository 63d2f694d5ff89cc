"""Every pattern of the examples gives what computing everything gives: late rows, updates, deletes, reruns."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.faults.pipeline import connected
from tests.pipelines.patterns import EXAMPLES, Scene, Stage
from tests.scope import ALL

from calve import settings
from calve.app import WorkerThread, open_project
from calve.engine import WorkerOptions
from calve.steps.spark.client import release

V2, V3 = "v2 copy-on-write", "v3 merge-on-read"
_TOML = """
[spark]
remote = "{remote}"

[spark.conf]
"spark.sql.shuffle.partitions" = 1
"spark.sql.codegen.wholeStage" = "false"
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"spark.sql.adaptive.enabled" = "false"
"""
_QUICK = WorkerOptions(slots=2, tick=0.05, heartbeat=0.5, lease=60.0, poll=0.1, drain=20.0)

COMPACTED = "CALL lake.system.rewrite_data_files(table => 'db.plays', options => map('rewrite-all', 'true'))"
APPENDS = (
    (
        """INSERT INTO db.plays VALUES (1, 'ann', DATE'2026-03-01', ' TV', 60),
           (2, 'ann', DATE'2026-03-01', 'phone', 30), (3, 'bob', DATE'2026-03-02', 'TV ', 45)""",
    ),
    (
        "INSERT INTO db.plays VALUES (4, 'bob', DATE'2026-03-03', 'TV', 20)",
        "INSERT INTO db.plays VALUES (5, 'cy', DATE'2026-03-01', 'Phone', 15)",  # late
    ),
    (COMPACTED, "INSERT INTO db.plays VALUES (2, 'ann', DATE'2026-03-02', 'tablet', 70)"),
)
"""What happens to a source that is only appended to, run by run; a key comes twice."""

CHANGES = (
    *APPENDS[:2],
    (
        "UPDATE db.plays SET seconds = 99, device = 'tablet' WHERE id = 2",
        "UPDATE db.plays SET day = DATE'2026-03-02' WHERE id = 1",
        "DELETE FROM db.plays WHERE account = 'cy'",
        COMPACTED,
        "DELETE FROM db.plays WHERE day = DATE'2026-03-03'",
        "INSERT INTO db.plays VALUES (6, 'dan', DATE'2026-03-05', 'TV', 5)",
    ),
)
"""What happens to any other."""

MORE = "INSERT INTO db.plays VALUES (7, 'dan', DATE'2026-03-01', 'tv', 12), (8, 'eve', DATE'2026-03-06', 'tv', 1)"
UNDONE = "DELETE FROM db.plays WHERE id = 6"
PAUSES = "INSERT INTO db.pauses VALUES (1, 'ann', DATE'2026-03-01', 4), (2, 'bob', DATE'2026-03-03', 6)"
DAY_BEFORE_LAST = (
    "INSERT INTO db.plays VALUES (9, 'ann', DATE'2026-03-04', 'TV', 7), (10, 'dan', DATE'2026-03-04', 'TV', 8)"
)
"""Totals before it stay, those after it do not."""
LATE_PAUSE = "INSERT INTO db.pauses VALUES (3, 'eve', DATE'2026-03-02', 2)"


@dataclass(frozen=True, slots=True)
class Story:
    """What a pattern has to bear."""

    kind: str
    target: str
    rounds: tuple[tuple[str, ...], ...] = CHANGES
    last: tuple[str, ...] = (MORE,)
    """What comes before the run that is killed, once it has delivered."""
    meanwhile: tuple[str, ...] = (UNDONE,)
    """What comes before it is killed: its restart must not take that along."""
    killed_before: str = "commit"
    more: dict[str, str] = field(default_factory=dict)
    """Other targets, with their queries."""


STORIES = {
    "append": Story(V3, "db.clean_plays", APPENDS, meanwhile=(COMPACTED, APPENDS[0][0])),
    "merge": Story(V2, "db.clean_plays"),
    "row-filter": Story(V3, "db.account_days"),
    "range": Story(
        V2,
        "db.account_totals",
        ((*CHANGES[0], PAUSES), CHANGES[1], (*CHANGES[2], LATE_PAUSE), (DAY_BEFORE_LAST,)),
        more={"db.account_days": "full_daily.sql"},
    ),
    "accumulate": Story(V2, "db.accounts"),
    "median": Story(V3, "db.day_medians"),
    "dimension": Story(
        V3,
        "db.named_plays",
        (
            (
                "INSERT INTO db.titles VALUES (1, 'Dawn', 'drama'), (2, 'Dusk', 'comedy')",
                """INSERT INTO db.title_plays VALUES (1, DATE'2026-03-01', 1), (2, DATE'2026-03-01', 2),
                   (3, DATE'2026-03-02', 2), (4, DATE'2026-03-02', 3)""",
            ),
            (
                "UPDATE db.titles SET genre = 'thriller' WHERE title_id = 2",
                "INSERT INTO db.titles VALUES (3, 'Noon', 'western')",  # its plays came first
            ),
            (
                "DELETE FROM db.titles WHERE title_id = 1",
                "DELETE FROM db.title_plays WHERE id = 3",
                "UPDATE db.title_plays SET title_id = 3 WHERE id = 2",
            ),
        ),
        last=("INSERT INTO db.title_plays VALUES (5, DATE'2026-03-01', 2)",),
        meanwhile=("UPDATE db.titles SET name = 'Night' WHERE title_id = 2",),
    ),
    "multi-stage": Story(
        V2,
        "db.device_days",
        APPENDS,
        meanwhile=("INSERT INTO db.plays VALUES (8, 'eve', DATE'2026-03-06', 'radio', 200)",),
        killed_before="totals",
    ),
    "mixed": Story(V3, "db.summary", APPENDS, meanwhile=(APPENDS[0][0],), killed_before="summary"),
    "foreach": Story(V2, "db.device_days"),
}
CASES = [
    pytest.param(name, kind, id=f"{name}, {kind}")
    for name, story in STORIES.items()
    for kind in (V2, V3)
    if ALL or kind == story.kind
]


@pytest.fixture(scope="module")
def stage(connect_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield a project on the suite's Spark Connect server, with a worker in a thread."""
    folder = tmp_path_factory.mktemp("patterns")
    (folder / settings.FILE).write_text(_TOML.format(remote=connect_url))
    loaded = settings.load(folder, {})
    with open_project(loaded) as project, WorkerThread(project, options=_QUICK) as worker:
        worker.take()
        project.lake.catalog("lake")  # with tables as Spark wants them
        spark = connected(loaded, connect_url)
        yield Stage(folder, project, worker, spark)
        worker.end()
        release(spark)


def test_every_example_is_tried() -> None:
    """No folder is left out."""
    assert sorted(STORIES) == sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_pattern_gives_what_everything_gives(stage: Stage, name: str, kind: str) -> None:
    """After every run, also the one after a run that was killed and restarted while the sources changed."""
    story = STORIES[name]
    scene = Scene(stage, name, kind, {story.target: "full.sql", **story.more})
    scene.build()
    for changes in story.rounds:
        scene.change(*changes)
        scene.run()
        scene.check()
    scene.change(*story.last)
    scene.run_killed(story.killed_before, *story.meanwhile)
    scene.run()
    scene.check()


@pytest.mark.parametrize("name", STORIES)
def test_an_example_says_what_it_is(name: str) -> None:
    """It comes with its tables, the query of everything, and a page."""
    folder = EXAMPLES / name
    assert {"README.md", "full.sql", "tables.sql", "workflow.yaml"} <= {path.name for path in folder.iterdir()}
