"""The JSON Schema accepts what users write, in each form, and points at what is wrong."""

import json
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from tests.talk_workflows import FIRST, SECOND, THIRD
from tests.unit.definition.templates.makers import template

from calve.definition.document import all_steps, entry
from calve.definition.forms import canonical
from calve.definition.forms.keys import KEYS, WRAPPERS
from calve.definition.forms.yaml_form import WORKFLOW_KEYS
from calve.definition.model import ParamType
from calve.definition.problems import Problems
from calve.definition.schema import schema
from calve.definition.step_types import STEP_TYPES, StepTypes
from calve.definition.syntax import read
from calve.definition.templates import JobTemplates

SCHEMA = schema(templates=["our_job"])
VALIDATOR = Draft202012Validator(SCHEMA)

EARLY = """
id: old
steps:
  - {id: capture, type: ICDC, sourceTable: db.t, targetTable: db.t_icdc}
  - {id: job, type: Spark, dependsOn: [capture], script: SELECT 1}
"""
MAESTRO = """
properties: {owner: tester, run_strategy: {rule: PARALLEL, workflow_concurrency: 5}}
workflow:
  id: sample
  time_triggers: [{type: CRON, cron: "*/2 * * * *", timezone: US/Pacific, fuzzy_max_delay: 30s}]
  params: {foo: {expression: "1 + 1", type: LONG}}
  steps:
    - foreach:
        id: each
        params: {loop_params: {type: MAP, value: {i: {expression: "Util.intsBetween(0, 2, 1);", type: LONG_ARRAY}}}}
        steps:
          - step: {id: job.1, type: NoOp, transition: {successors: {job.5: "true"}}, retry_policy: {}}
          - step: {id: job.5, type: notebook, sub_type: shell, tags: [x, {name: y, namespace: SYSTEM}]}
    - while:
        id: again
        condition: i < 3
        params: {loop_params: {type: MAP, value: {}}}
        steps: [{step: {id: a, type: NoOp}}]
    - subworkflow: {id: sub, sync: false, params: {subworkflow_id: {type: STRING, value: w}}}
    - template: {id: t, sub_type: incremental}
is_active: false
whatever: kept
"""
SPELLINGS = """
Workflow:
  id: all
  owner: {name: me, team: us}
  run_strategy: parallel
  workflow_concurrency: 5
  criticality: high
  timeout: 2 hours
  tags: [a]
  param0: 15
  '!computed<long>': 1 + 1
  jobs:
    - job: {id: a, type: sleep, sleep_seconds: "${n}", transition: [b, IF param0 < 0 THEN c, OTHERWISE d]}
    - job: {id: b, type: SQL, sql: {connection: w, '!query': "'SELECT ' + 1", fetch: "${fetch}"}}
    - job: {id: c, type: Shell, shell: {command: [ls, -l], env: {N: 1}, success_codes: [0, 1]}, retry_policy: {}}
    - job: {id: d, type: our_job, type_version: v1}
    - job: {id: e, type: Http, params: {http: {url: x}}}
    - job: {id: f, type: Docker, '!docker<pmap>': settings}
    - job: {id: g, type: ICDC, sourceTable: a.b, targetTable: c.d}
    - job: {id: h, type: Http, http: {url: x, auth: {token: t}, headers: {A: 1}}, depends_on: g}
    - foreach: {id: i, ranges: {k: {to: 24}, l: [0, 5]}, jobs: [{job: {id: j, type: NoOp}}], dag: PARALLEL}
    - while: {id: k, params: {x: 1}, condition: x < 3, jobs: [{job: {id: l, type: NoOp}}]}
    - template: {id: m, type: incremental, ip_capture: {source_tables: [t]}, spark: {file: a.sql}}
    - job: {id: n, type: NoOp, signal_dependencies: [{name: s}], signal_outputs: [done]}
    - job: {id: o, type: Spark, spark: {merge: {into: db.t, using: s, keys: [k]}}, targets: [db.t]}
  dag: {a: b, b: [c, IF x THEN d], c: {IF y: d -> e, OTHERWISE: f}}
"""
STEPPED = """
Workflow: {id: w, steps: [{job: {id: a, type: NoOp}}, {job: {id: b, type: Spark, spark: {file: b.sql}}}], dag: a -> b}
"""
GOOD = {
    "stepped": STEPPED,
    "first": FIRST,
    "second": SECOND,
    "third": THIRD,
    "early": EARLY,
    "maestro": MAESTRO,
    "spellings": SPELLINGS,
}


def _errors(text: str) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(yaml.safe_load(text))]


def test_the_schema_is_one() -> None:
    """Of the dialect that it names."""
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", GOOD)
def test_what_may_be_written_is_accepted(name: str) -> None:
    """In all forms; and what the schema accepts here, the forms and the checks do too."""
    assert not _errors(GOOD[name])
    problems = Problems()
    document = read(GOOD[name], name="w.yaml", problems=problems)
    assert document is not None
    types = StepTypes(templates=JobTemplates.of([template("our_job", version="v1")]))
    shaped = canonical(document, problems, types)
    steps = [step for _, step in all_steps(entry(shaped, "workflow"))]
    for step in steps:
        types.check(step, problems)
    types.check_references(steps, problems)
    assert not [problem for problem in problems if problem.code != "edge_unused"]


@pytest.mark.parametrize(
    "trigger",
    [
        "cron: 0 * * * *",
        "{cron: '@daily', timezone: Europe/Berlin, fuzzy_max_delay: 30s, catch_up: latest}",
        "{interval: 15 minutes}",
        "[{cron: '@daily'}, {signal: table_ready}]",
        "{signals: {a: {match_params: {x: 1}}}}",
        "{incremental: db.t}",
        "{incremental: {source_tables: [db.t], min_files: 2, max_delay: 1h}}",
        "'@hourly'",
    ],
)
def test_every_spelling_of_a_trigger_is_accepted(trigger: str) -> None:
    """Time, signals and tables."""
    written = trigger if trigger.startswith(("{", "[", "'")) else f"{{{trigger}}}"
    assert not _errors(f"Trigger: {written}\nWorkflow: {{id: w, jobs: [{{job: {{id: a, type: NoOp}}}}]}}")


def _job(job: str) -> str:
    return f"Workflow: {{id: w, jobs: [{{job: {{id: a, {job}}}}}]}}"


BAD = {
    "no_workflow": ("x: 1", "$"),
    "no_id": ("Workflow: {jobs: [{job: {id: a, type: NoOp}}]}", "$.Workflow"),
    "no_jobs": ("Workflow: {id: w}", "$.Workflow"),
    "empty_jobs": ("Workflow: {id: w, jobs: []}", "$.Workflow.jobs"),
    "no_type": ("Workflow: {id: w, jobs: [{job: {id: a}}]}", "$.Workflow.jobs[0].job"),
    "unknown_kind": ("Workflow: {id: w, jobs: [{jobb: {id: a, type: NoOp}}]}", "$.Workflow.jobs[0]"),
    "misspelt_top": ("Triger: x\nWorkflow: {id: w, jobs: [{job: {id: a, type: NoOp}}]}", "$"),
    "bad_trigger": ("Trigger: {corn: x}\nWorkflow: {id: w, jobs: [{job: {id: a, type: NoOp}}]}", "$.Trigger"),
    "bad_dag": ("Workflow: {id: w, dag: sequentially, jobs: [{job: {id: a, type: NoOp}}]}", "$.Workflow.dag"),
    "bad_branch": ("Workflow: {id: w, dag: {a: {WHEN x: b}}, jobs: [{job: {id: a, type: NoOp}}]}", "$.Workflow.dag.a"),
    "bad_strategy": (
        "Workflow: {id: w, run_strategy: serial, jobs: [{job: {id: a, type: NoOp}}]}",
        "$.Workflow.run_strategy",
    ),
    "unknown_field": (_job("type: Spark, spark: {scirpt: x}"), "$.Workflow.jobs[0].job.spark"),
    "unknown_field_other_case": (_job("type: spark, spark: {script: x, scirpt: x}"), "$.Workflow.jobs[0].job.spark"),
    "wrong_type": (_job("type: Spark, spark: {script: [a]}"), "$.Workflow.jobs[0].job.spark.script"),
    "both": (_job("type: Spark, spark: {script: a, file: b}"), "$.Workflow.jobs[0].job.spark"),
    "neither": (_job("type: Spark, spark: {args: [a]}"), "$.Workflow.jobs[0].job.spark"),
    "no_config": (_job("type: Spark"), "$.Workflow.jobs[0].job"),
    "missing": (_job("type: Docker, docker: {command: x}"), "$.Workflow.jobs[0].job.docker"),
    "choice": (
        _job("type: IpCapture, ip_capture: {source_tables: [t], capture_mode: CDC}"),
        "$.Workflow.jobs[0].job.ip_capture.capture_mode",
    ),
    "choice_in_list": (
        _job("type: IpCapture, ip_capture: {source_tables: [t], data_operations: [upsert]}"),
        "$.Workflow.jobs[0].job.ip_capture.data_operations[0]",
    ),
    "bound": (
        _job("type: IpCapture, ip_capture: {source_tables: [t], max_files: 0}"),
        "$.Workflow.jobs[0].job.ip_capture.max_files",
    ),
    "number_as_text": (_job("type: Sleep, sleep_seconds: five"), "$.Workflow.jobs[0].job.sleep_seconds"),
    "not_together": (_job("type: Spark, spark: {script: a, remote: b, master: c}"), "$.Workflow.jobs[0].job.spark"),
    "nested_field": (_job("type: Http, http: {url: x, auth: {user: y}}"), "$.Workflow.jobs[0].job.http.auth"),
    "map_value": (_job("type: Shell, shell: {command: x, env: {A: [1]}}"), "$.Workflow.jobs[0].job.shell.env.A"),
    "failure_mode": (_job("type: NoOp, failure_mode: IGNORE"), "$.Workflow.jobs[0].job.failure_mode"),
    "retry_policy": (_job("type: NoOp, retry_policy: {retries: 3}"), "$.Workflow.jobs[0].job.retry_policy"),
    "foreach_without_jobs": ("Workflow: {id: w, jobs: [{foreach: {id: a}}]}", "$.Workflow.jobs[0].foreach"),
    "maestro_param": (
        "workflow: {id: w, params: {a: {value: 1}}, steps: [{step: {id: a, type: NoOp}}]}",
        "$.workflow.params.a",
    ),
    "maestro_step": ("workflow: {id: w, steps: [{step: {id: a, type: NoOp, retries: 3}}]}", "$.workflow.steps[0].step"),
    "maestro_both": (
        "workflow: {id: w, params: {x: {type: LONG, value: 1, expression: a}}, steps: [{step: {id: a, type: NoOp}}]}",
        "$.workflow.params.x",
    ),
    "early_without_type": ("id: w\nsteps: [{id: a}]", "$.steps[0]"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_refused(name: str) -> None:
    """Each of these holds one mistake, and is told where it stands."""
    text, path = BAD[name]
    found = best_match(VALIDATOR.iter_errors(yaml.safe_load(text)))
    assert found is not None
    assert found.json_path == path


def _properties(name: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["$defs"][name]["properties"]
    return found


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_every_key_of_a_job_is_known(wrapper: str) -> None:
    """So that editors complete it."""
    assert KEYS[WRAPPERS[wrapper]].keys() <= _properties(wrapper).keys()


def test_every_key_of_a_workflow_is_known() -> None:
    """But ``steps``, which is the other spelling of ``jobs``."""
    assert WORKFLOW_KEYS.keys() - {"steps"} <= _properties("workflow").keys()


@pytest.mark.parametrize("name", [name for name, item in STEP_TYPES.items() if item.config])
def test_every_field_of_a_config_map_is_known_and_described(name: str) -> None:
    """Its doc is what editors show."""
    found = _properties(f"config.{name}")
    for item in STEP_TYPES[name].fields:
        assert found[item.name]["description"] == item.doc
        assert found[item.name].get("default") == item.default


def test_types_and_templates_are_completed() -> None:
    """In their own spelling."""
    first, _ = SCHEMA["$defs"]["type"]["anyOf"]
    assert {"Spark", "IpCapture", "our_job"} <= set(first["enum"])
    assert "foreach" not in first["enum"]


SAMPLES: dict[ParamType, Any] = {
    ParamType.STRING: "text",
    ParamType.LONG: 1,
    ParamType.DOUBLE: 1.5,
    ParamType.BOOLEAN: True,
    ParamType.STRING_MAP: {"a": "b"},
    ParamType.MAP: {"a": 1},
    ParamType.STRING_ARRAY: ["a"],
    ParamType.LONG_ARRAY: [1],
    ParamType.DOUBLE_ARRAY: [1.5],
    ParamType.BOOLEAN_ARRAY: [True],
}
CONFIGURED = [(name, item.name) for name, declared in STEP_TYPES.items() for item in declared.fields]


def _says_wrong(name: str, field: str, value: Any) -> bool:
    """Tell whether ``check`` finds a value of a field to be of the wrong shape."""
    config = STEP_TYPES[name].config
    text = json.dumps({"Workflow": {"id": "w", "jobs": [{"job": {"id": "a", "type": name, config: {field: value}}}]}})
    problems = Problems()
    document = read(text, name="w.json", problems=problems)
    assert document is not None
    shaped = canonical(document, problems, StepTypes())
    for _, step in all_steps(entry(shaped, "workflow")):
        StepTypes().check(step, problems)
    return any(problem.code in {"wrong_type", "unknown_field"} for problem in problems)


@pytest.mark.parametrize(("name", "field"), CONFIGURED)
def test_the_schema_and_the_checks_agree_on_the_type_of_every_field(name: str, field: str) -> None:
    """What the one refuses the other refuses too; choices are another matter."""
    shape = _properties(f"config.{name}")[field]
    declared = STEP_TYPES[name].known()[field]
    validator = Draft202012Validator(shape)
    for value in SAMPLES.values():
        if declared.choices and value in ("text", ["a"]):
            continue
        assert validator.is_valid(value) != _says_wrong(name, field, value), value
