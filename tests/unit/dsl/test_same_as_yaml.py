"""A workflow gives the same definition, whether it is described in Python or in YAML."""

from textwrap import dedent

import pytest
from tests.talk_workflows import FIRST, SECOND, THIRD

from calve.definition import installed, load
from calve.definition.model import Definition
from calve.dsl import (
    Workflow,
    approval,
    cron,
    exponential,
    expr,
    foreach,
    http,
    icdc,
    incremental,
    interval,
    ip_capture,
    ip_commit,
    noop,
    on,
    on_valid_through,
    param,
    retry,
    secret,
    shell,
    signal,
    signal_dependency,
    signal_output,
    sleep,
    spark,
    subworkflow,
    template,
    valid_through,
    while_,
)

QUERY = (
    "INSERT OVERWRITE TABLE ${TARGET_TABLE} SELECT USER_ID, DATE_INT, SUM(watch_time) FROM ${SOURCE_TABLE} "
    "WHERE is_active=true AND DATE_INT > ${DATE_MINUS_7} GROUP BY USER_ID, DATE_INT"
)


def from_yaml(text: str) -> Definition:
    """Return the definition that a YAML text gives."""
    return load(dedent(text), name="workflow.yaml", vocabulary=installed()).required()


def assert_same(wf: Workflow, text: str) -> None:
    """Compare a workflow with YAML, and with the YAML that it writes itself."""
    assert wf.build() == from_yaml(text)
    assert wf.build() == from_yaml(wf.to_yaml())


def test_the_demo_pipeline() -> None:
    """The first workflow of the talk."""
    with Workflow(
        "demo.pipeline",
        description="A sample with a link to [a workflow](https://example.com)",
        triggers=[cron("@daily")],
        my_query=QUERY,
    ) as wf:
        spark("job.1", script=wf["my_query"])
    assert_same(
        wf,
        FIRST,
    )


def test_the_remediation_pipeline() -> None:
    """The second workflow of the talk, with its condition and its otherwise."""
    with Workflow("auto.remediation.pipeline") as wf:
        normal = subworkflow("normal_workflow", workflow_id="demo.pipeline", failure_mode="IGNORE_FAILURE")
        check = noop("check_status")
        recovery = subworkflow("recovery", workflow_id="example.recovery.wf")
        re_run = subworkflow("re_run", workflow_id="demo.pipeline")
        end = noop("end")
        failed = f"{normal['MAESTRO_STEP_STATUS'].sel} == 'COMPLETED_WITH_ERROR'"
        normal >> check.when(failed) >> recovery >> re_run >> end
        check.otherwise() >> end
    assert_same(
        wf,
        SECOND,
    )


def test_the_incremental_pipeline() -> None:
    """The third workflow of the talk."""
    with Workflow(
        "incremental.processing.pipeline",
        description="the same pipeline, made incremental by two steps and one parameter",
        triggers=[cron("@daily")],
    ) as wf:
        change = ip_capture(
            "capture_change", source_tables=["membership_table"], capture_mode="ICDC", data_operations=["append"]
        )
        subworkflow("auto.remediation.pipeline", SOURCE_TABLE=change["icdc_table"], my_query="$S3{my_script.sql}")
        ip_commit("commit_checkpoint", capture_step=change)
        wf.sequential()
    assert_same(
        wf,
        THIRD,
    )


def test_the_older_form_of_a_capture() -> None:
    """A step of type ICDC, whose fields YAML may write on the job itself."""
    with Workflow("older") as wf:
        icdc("capture", source_table="db.events", target_table="db.changes")
    assert_same(
        wf,
        """
        Workflow:
          id: older
          jobs:
            - job: {id: capture, type: ICDC, sourceTable: db.events, targetTable: db.changes}
        """,
    )


def test_loops() -> None:
    """Foreach over a range and a list, and while, with the steps inside."""
    with Workflow("loops") as wf:
        with foreach("each", loop_params={"i": range(1, 10, 2), "region": ["eu", "us"]}, concurrency=4) as each:
            first = shell("first", command=f"echo {each['i']} {each['region']}")
            second = noop("second")
            first >> second
        with while_("until", condition="n < 3", loop_params={"n": 0}):
            noop("count", n=expr("n + 1", type="LONG"))
        each >> "until"
    assert_same(
        wf,
        """
        Workflow:
          id: loops
          jobs:
            - foreach:
                id: each
                concurrency: 4
                ranges: {i: {from: 1, to: 10, increment: 2}}
                loop_params: {region: [eu, us]}
                jobs:
                  - job: {id: first, type: Shell, shell: {command: 'echo ${i} ${region}'}}
                  - job: {id: second, type: NoOp}
                dag: sequential
            - while:
                id: until
                condition: n < 3
                loop_params: {n: 0}
                jobs:
                  - job: {id: count, type: NoOp, '!n<long>': n + 1}
          dag: sequential
        """,
    )


def test_params_of_every_type() -> None:
    """Values have the types that YAML infers, and modes and expressions are the same."""
    with Workflow(
        "params",
        text="a",
        whole=1,
        fraction=1.5,
        truth=True,
        nothing=[],
        empty={},
        texts=["a", "b"],
        wholes=[1, 2],
        fractions=[1.5, 2],
        truths=[True, False],
        text_map={"a": "b"},
        mixed_map={"a": "b", "n": 1, "inner": {"x": "y"}},
        constant=param(5, mode="CONSTANT"),
        double=param(5, type="DOUBLE"),
        members=param({"a": "b"}, type="MAP"),
        sum=expr("1 + 1", type="LONG", mode="IMMUTABLE"),
        password=secret("warehouse/password"),
    ) as wf:
        noop("a")
    assert_same(
        wf,
        """
        Workflow:
          id: params
          text: a
          whole: 1
          fraction: 1.5
          truth: true
          nothing: []
          empty: {}
          texts: [a, b]
          wholes: [1, 2]
          fractions: [1.5, 2]
          truths: [true, false]
          text_map: {a: b}
          mixed_map: {a: b, n: 1, inner: {x: y}}
          constant(constant): 5
          double<double>: 5
          members<pmap>: {a: b}
          '!sum<long>(immutable)': 1 + 1
          password<secret>: warehouse/password
          jobs:
            - job: {id: a, type: NoOp}
        """,
    )


def test_fields_of_workflow_and_step() -> None:
    """Properties, triggers, retries and signals are the same."""
    with Workflow(
        "fields",
        owner={"name": "dana", "team": "data"},
        triggers=[
            cron("0 0 12 1/1 * ? *", timezone="US/Pacific", fuzzy_max_delay="30s", catch_up="none"),
            cron("daily"),
            interval("15 minutes"),
            signal(
                on("a", match={"foo": "bat", "n": (">=", 5)}, join_keys=["day"]),
                on("b", join_keys=["date"]),
                params={"x": 1},
                condition="1 < 2",
                dedup_expr="'x'",
            ),
            signal("c"),
            on_valid_through("db.t"),
            on_valid_through("db.t", "db.u"),
            incremental("db.t", data_operations=["append", "overwrite"], min_files=2, debounce="1 min"),
        ],
        name="All fields",
        tags=["one", {"name": "two", "namespace": "PLATFORM"}],
        timeout="2 hours",
        criticality="HIGH",
        instance_step_concurrency=10,
        run_strategy={"rule": "PARALLEL", "workflow_concurrency": 5},
        step_concurrency=3,
        alerting={"emails": ["a@example.com"], "tct": {"completed_by_hour": 9, "tz": "UTC"}},
        time_trigger_disabled=True,
        is_active=False,
        n=3,
        day="20240101",
    ) as wf:
        http(
            "call",
            url="https://example.com",
            headers={"n": 1},
            name="Call",
            description="Calls.",
            failure_mode="FAIL_IMMEDIATELY",
            tags=["slow"],
            timeout=60,
            retry_policy=retry(errors=1, platform="${n}", timeouts=0, backoff=exponential(errors=(60, 2, 600))),
            signal_dependencies=[
                signal_dependency("s", match={"day": expr("1", type="LONG"), "n": (">", 3)}),
                valid_through("db.t", "RUN_TS"),
                valid_through("db.u", 5),
            ],
            signal_outputs=[signal_output("t", params={"day": "${day}"}, payload={"a": [1]})],
        )
        spark("write", script="x", audit=["SELECT true"], publish="commit", capture="c", targets=["db.t"])
        approval("ask", message="Go?", timeout="2 days", step_timeout="3 days")
        sleep("wait", sleep_seconds=5)
    assert_same(
        wf,
        """
        is_active: false
        Workflow:
          id: fields
          name: All fields
          owner: {name: dana, team: data}
          tags: [one, {name: two, namespace: PLATFORM}]
          timeout: 2 hours
          criticality: HIGH
          instance_step_concurrency: 10
          run_strategy: {rule: PARALLEL, workflow_concurrency: 5}
          step_concurrency: 3
          alerting: {emails: [a@example.com], tct: {completed_by_hour: 9, tz: UTC}}
          time_trigger_disabled: true
          n: 3
          day: '20240101'
          time_triggers:
            - {type: CRON, cron: 0 0 12 1/1 * ? *, timezone: US/Pacific, fuzzy_max_delay: 30s, catch_up: none}
            - {type: PREDEFINED, expression: '@daily'}
            - {type: INTERVAL, interval: 15 minutes}
          signal_triggers:
            - definitions:
                a: {match_params: {foo: bat, n: {value: 5, operator: '>='}}, join_keys: [day]}
                b: {join_keys: [date]}
              params: {x: 1}
              condition: 1 < 2
              dedup_expr: "'x'"
            - definitions: {c: {}}
          trigger: [{valid_through: db.t}, {valid_through: [db.t, db.u]}]
          incremental_triggers:
            - {source_tables: [db.t], data_operations: [append, overwrite], min_files: 2, debounce: 1 min}
          jobs:
            - job:
                id: call
                type: Http
                http: {url: https://example.com, headers: {n: 1}}
                name: Call
                description: Calls.
                failure_mode: FAIL_IMMEDIATELY
                tags: [slow]
                timeout: 60
                retry_policy:
                  error_retry_limit: 1
                  platform_retry_limit: ${n}
                  timeout_retry_limit: 0
                  backoff:
                    type: EXPONENTIAL_BACKOFF
                    error_retry_backoff_in_secs: 60
                    error_retry_exponent: 2
                    error_retry_limit_in_secs: 600
                signal_dependencies:
                  - name: s
                    match_params:
                      day: {param: {type: LONG, expression: '1'}}
                      n: {param: 3, operator: '>'}
                  - {table: db.t, valid_through: RUN_TS}
                  - {table: db.u, valid_through: 5}
                signal_outputs:
                  - {name: t, params: {day: '${day}'}, payload: {a: [1]}}
            - job:
                id: write
                type: Spark
                targets: [db.t]
                spark: {script: x, audit: [SELECT true], publish: commit, capture: c}
            - job: {id: ask, type: Approval, timeout: 3 days, approval: {message: 'Go?', timeout: 2 days}}
            - job: {id: wait, type: Sleep, sleep_seconds: 5}
        """,
    )


def test_templates() -> None:
    """A template stands for its steps, and is written by its name."""
    with Workflow("templates") as wf:
        template(
            "daily",
            sub_type="incremental",
            params={
                "ip_capture": {"source_tables": ["db.t"], "max_files": 5},
                "spark": {"script": "SELECT 1", "max_rows": 5},
            },
        ) >> noop("end")
    assert_same(
        wf,
        """
        Workflow:
          id: templates
          jobs:
            - template:
                id: daily
                type: incremental
                ip_capture: {source_tables: [db.t], max_files: 5}
                spark: {script: SELECT 1, max_rows: 5}
            - job: {id: end, type: NoOp}
          dag: sequential
        """,
    )
    assert [step.id for step in wf.build().workflow.steps][-1:] == ["end"]
    assert len(wf.build().workflow.steps) == 4
    assert "sub_type: incremental" in wf.to_yaml()


@pytest.mark.parametrize("word", ["sequential", "parallel"])
def test_the_order_of_steps(word: str) -> None:
    """``sequential()`` is the dag of that name; without it and without edges, steps run at once."""
    with Workflow("ordered") as wf:
        noop("a")
        noop("b")
        noop("c")
        if word == "sequential":
            wf.sequential()
    jobs = "[{job: {id: a, type: NoOp}}, {job: {id: b, type: NoOp}}, {job: {id: c, type: NoOp}}]"
    assert_same(wf, f"Workflow: {{id: ordered, jobs: {jobs}, dag: {word}}}")
