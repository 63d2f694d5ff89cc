"""A project with hostile strings in every field that a person or a table can name."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from tests.projects import SOURCE, WebProject, filled_project, page_paths

from calve.capture import Wanted
from calve.definition import load_template
from calve.engine import Outcome, State, StepContext

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</textarea></title></pre></script><iframe src=//evil.example>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;<!--",
    "\u202e\u2066<b>",
]
DANGEROUS = frozenset({"iframe", "img", "object", "embed", "base"})
"""Elements that no page has."""
_TEXT = "".join(HOSTILE)
_FIELDS = ("owner", "description", "name", "step", "value", "loop", "question", "error", "log")
MARKS = {
    **{field: f"xss-{field}{_TEXT}" for field in _FIELDS},
    "tag": "xss-tag javascript:alert(1) '-alert(1)-' {{7+7}}&lt",  # has letters that are allowed: these are the worst
    "partition": f"xss-partition{HOSTILE[1]}",  # a folder has the name
    "consumer": f"xss-consumer{_TEXT}"[:100],
    "signal": f"xss-signal{_TEXT}",
    "template": f"xss-template{_TEXT}",
    "table": f"xss-table{HOSTILE[1]}",
    "column": f"xss-column{_TEXT}",
    "reference": f"xss-reference{_TEXT}",
    "writer": f"xss-writer{_TEXT}",
}
"""What stands in each field. Names of users and tokens are not among them: the rules refuse such names."""

_TEMPLATE = """
{{owner: ann, status: stable, support: {0},
  definition: {{job_type: xss, step_type: Sleep, description: {0},
    params: {{sleep_seconds: {{type: LONG, value: 1}}}}}}}}
"""


@contextmanager
def hostile_project(folder: Path) -> Iterator[WebProject]:
    """Make a project that has all of them; its addresses lead to where they are shown."""
    with filled_project(folder, commits=4, runs=2) as made:
        _fill(made)
        made.names.update(workflow_id="xss.flow", instance_id="1", loop="loop", step_id="bad")
        yield made


def seen(text: str) -> set[str]:
    """Return the fields of which a text shows the beginning."""
    return {field for field, mark in MARKS.items() if mark[: len(field) + 25] in text}


def addresses(made: WebProject) -> list[str]:
    """Return the addresses of all pages, and of the parts of them that show what is hostile."""
    step = "/workflows/xss.flow/instances/1?step=bad"
    of_table = [path for path in page_paths() if "{table}" in path]
    table = quote(f"playback.{MARKS['table']}", safe="")
    return [
        *(f"{step}&tab={tab}" for tab in ("cause", "about", "log", "params", "attempts")),
        *(path.replace("{table}", table) for path in of_table),
        "/workflows/xss.flow?tab=definition",
        "/workflows/xss.ask/instances/1",
        "/job-templates/xss",
        "/signals/xss/instances/1",
        *made.addresses(),
    ]


def _fill(made: WebProject) -> None:
    import pyarrow as pa

    playground, project = made.playground, made.project
    playground.script.parts |= {"bad": _failing, "item": _failing}
    for text in (_definition(), _asking()):
        playground.push(text)
    playground.start("xss.flow")
    playground.start("xss.ask")
    catalog = project.lake.catalog("lake").pyiceberg()
    table = catalog.load_table(SOURCE)
    table.append(pa.table({"id": [1], "day": [MARKS["partition"]]}, schema=table.schema().as_arrow()))
    _write_table(catalog)
    template = load_template(
        _TEMPLATE.format(json.dumps(MARKS["template"])), name="it", vocabulary=playground.tools.vocabulary
    )
    playground.engine.push_template(template, author=MARKS["template"])
    project.captures.capture([SOURCE], MARKS["consumer"], Wanted())
    project.signals.announce("xss", {"value": MARKS["signal"]}, payload={"value": MARKS["signal"]})


def _write_table(catalog: "Catalog") -> None:
    """Make a table whose name, column, branch and summary are hostile."""
    import pyarrow as pa

    schema = Schema(NestedField(1, MARKS["column"], LongType()), NestedField(2, "day", StringType()))
    by_day = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
    table = catalog.create_table(("playback", MARKS["table"]), schema, partition_spec=by_day)
    rows = pa.table({MARKS["column"]: [1], "day": ["2026-03-26"]}, schema=table.schema().as_arrow())
    table.append(rows, snapshot_properties={"calve.attempt": MARKS["writer"], "spark.app.id": MARKS["writer"]})
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_tag(snapshot.snapshot_id, MARKS["reference"]).commit()


def _failing(context: StepContext) -> Outcome:
    context.log(f"{MARKS['log']}\n")
    return Outcome(State.FATAL_ERROR, message=MARKS["error"])


def _definition() -> str:
    step = {"id": "bad", "type": "Shell", "description": MARKS["step"], "given<string>": MARKS["value"]}
    loop = {
        "id": "loop",
        "loop_params": {"one": [MARKS["loop"], "b"]},
        "jobs": [{"job": {"id": "item", "type": "Shell", "shell": {"script": "true"}}}],
    }
    workflow = {
        "id": "xss.flow",
        "name": MARKS["name"],
        "description": MARKS["description"],
        "owner": MARKS["owner"],
        "tags": [MARKS["tag"]],
        "jobs": [{"job": {**step, "shell": {"script": "true"}}}, {"foreach": loop}],
    }
    return json.dumps({"Workflow": workflow})


def _asking() -> str:
    ask = {"id": "ok", "type": "Approval", "approval": {"message": MARKS["question"]}}
    return json.dumps({"Workflow": {"id": "xss.ask", "jobs": [{"job": ask}]}})
