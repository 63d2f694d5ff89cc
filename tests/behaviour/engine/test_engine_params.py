"""What steps are given and what they give: params, outputs, secrets."""

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.engines import BUSY, DONE, Playground

from calve.definition import installed, load
from calve.engine import Announcement, Initiator, Outcome, RunStatus, State, StepContext, StepStatus, params_from_stored
from calve.errors import ActionRefused, ParamError, RequestInvalid, WorkflowMissing

if TYPE_CHECKING:
    from collections.abc import Callable

S = StepStatus


def given(playground: Playground, outputs: dict[str, Any], keys: str) -> tuple[StepStatus, str, Any]:
    """Return how a step ended that gave some outputs, what its timeline says, and its params."""
    playground.push(f"Workflow:\n  id: w\n  jobs:\n    - job: {{id: a, type: Sleep, {keys}}}\n")
    playground.script.parts["a"] = Outcome(State.DONE, outputs)
    run = playground.start()
    found = {name: param.result for name, param in params_from_stored(playground.attempt(run, "a").params).items()}
    return playground.statuses(run)["a"], playground.told(run, "a"), found


def test_a_step_gives_the_params_that_it_declares(playground: Playground) -> None:
    """Of each type; as a plain value, or as Maestro's programs write it."""
    status, _, params = given(
        playground,
        {
            "rows": 7,
            "rate": 0.5,
            "label": "x",
            "is_new": True,
            "days": [20260101, 20260102],
            "cities": ["a"],
            "pairs": {"k": "v"},
            "written": {"name": "written", "type": "LONG", "value": 9, "mode": "MUTABLE"},
        },
        "rows: 0, rate: 0.1, label: '', is_new: false, days: [1], cities: [], pairs<map>: {}, written: 1",
    )
    assert status is S.SUCCEEDED
    assert params["rows"] == 7
    assert params["rate"] == 0.5
    assert params["label"] == "x"
    assert params["is_new"] is True
    assert params["days"] == [20260101, 20260102]
    assert params["cities"] == ["a"]
    assert params["pairs"] == {"k": "v"}
    assert params["written"] == 9


def test_an_output_is_marked_as_one(playground: Playground) -> None:
    """By its source."""
    given(playground, {"rows": 7}, "rows: 0")
    run = playground.state.instances()[0]
    kept = playground.attempt(run, "a").params["rows"]
    assert "OUTPUT_PARAMETER" in str(kept)


def test_an_output_that_nobody_declared_is_an_error(playground: Playground) -> None:
    """The step has failed for good: its program and its definition do not agree."""
    status, told, _ = given(playground, {"rows": 7}, "other: 1")
    assert status is S.FATALLY_FAILED
    assert "Invalid output parameter [rows], not defined in params" in told


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": {"b": None}}, "has an unsupported type"),
        ([1, "x"], "has an unsupported type"),
        (None, "has an unsupported type"),
        ({"value": "x", "type": "LONG"}, "is invalid"),
    ],
)
def test_an_output_that_no_param_can_hold_is_an_error(playground: Playground, value: object, says: str) -> None:
    """Whatever it is."""
    status, told, _ = given(playground, {"rows": value}, "other: 1")
    assert status is S.FATALLY_FAILED
    assert says in told


@pytest.mark.parametrize("mode", ["CONSTANT", "IMMUTABLE", "MUTABLE_ON_START", "MUTABLE_ON_START_RESTART"])
def test_only_a_mutable_param_can_be_given(playground: Playground, mode: str) -> None:
    """The other four modes refuse it."""
    status, told, params = given(playground, {"rows": 7}, f"rows({mode}): 0")
    assert status is S.FATALLY_FAILED
    assert f"Cannot modify param with mode [{mode}] for parameter [rows]" in told
    assert params["rows"] == 0


def test_an_output_of_another_type_is_an_error(playground: Playground) -> None:
    """A text is no number."""
    status, _, params = given(playground, {"rows": "many"}, "rows: 0")
    assert (status, params["rows"]) == (S.FATALLY_FAILED, 0)


def test_the_outputs_of_a_type_need_no_declaration(playground: Playground) -> None:
    """An Http step has a status_code."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: ask, type: Http, http: {url: 'https://example.com'}, transition: ["IF status_code == 204 THEN quiet"]}
    - job: {id: quiet, type: Sleep, '!code<long>': ask__status_code}
""")
    playground.script.parts["ask"] = Outcome(State.DONE, {"status_code": 204})
    run = playground.start()
    assert playground.result(run, "ask", "status_code") == 204
    assert playground.result(run, "quiet", "code") == 204


def test_the_outputs_of_a_type_may_be_maps_and_lists(playground: Playground) -> None:
    """A row holds what its columns hold; a text with a dollar sign stays as it is."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: ask, type: SQL, sql: {query: SELECT 1, fetch: row, connection: db}}
    - job: {id: use, type: Sleep, '!n<long>': ask__row.get('n') + 1, '!name': ask__row.get('name')}
  dag: sequential
""")
    row = {"n": 41, "name": "costs $5 or ${x}", "is_new": True, "days": [1, 2], "more": {"a": "b"}, "deep": {"k": 1}}
    playground.script.parts["ask"] = Outcome(State.DONE, {"row_count": 1, "row": row})
    run = playground.start()
    assert playground.told(run, "ask") == ""
    assert playground.result(run, "ask", "row") == row
    assert playground.result(run, "use", "n") == 42
    assert playground.result(run, "use", "name") == "costs $5 or ${x}"


def test_a_failure_keeps_its_outputs_and_its_reason(playground: Playground) -> None:
    """Outputs that cannot be taken do not hide why it failed."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep, rows: 0}}]}")
    playground.script.parts["a"] = Outcome(State.FATAL_ERROR, {"rows": 3}, message="disk full")
    run = playground.start()
    assert playground.result(run, "a", "rows") == 3
    playground.script.parts["a"] = Outcome(State.FATAL_ERROR, {"unknown": 3}, message="disk full")
    run = playground.start()
    assert "disk full\nInvalid output parameter [unknown]" in playground.told(run, "a")


def test_work_hands_in_outputs_while_it_runs(playground: Playground) -> None:
    """They and its artifacts are kept at once; when it is over, no more are taken."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep, rows: 0}}]}")
    playground.script.parts["a"] = [BUSY, DONE]
    run = playground.start()
    key = playground.attempt(run, "a").uuid
    playground.engine.put_outputs(key, {"rows": 5}, {"page": 2})
    assert playground.result(run, "a", "rows") == 5
    assert playground.attempt(run, "a").artifacts["page"] == 2
    playground.engine.put_outputs(key, {}, {"page": 3})
    assert playground.attempt(run, "a").artifacts["page"] == 3
    with pytest.raises(ParamError, match="not defined in params"):
        playground.engine.put_outputs(key, {"unknown": 5})
    playground.advance(3_600)
    assert playground.result(run, "a", "rows") == 5
    with pytest.raises(ActionRefused, match="has ended"):
        playground.engine.put_outputs(key, {"rows": 6})
    with pytest.raises(WorkflowMissing, match="Attempt nobody does not exist"):
        playground.engine.put_outputs("nobody", {"rows": 6})


def test_steps_read_what_others_gave(playground: Playground) -> None:
    """By name, by function, with their status and their end."""
    playground.push("""
Workflow:
  id: w
  owner: tester
  jobs:
    - job: {id: a, type: Sleep, rows: 0}
    - job:
        id: b
        type: Sleep
        '!by_name<long>': a__rows + 1
        '!by_function<long>': "params.getFromStep('a', 'rows') + 2"
        '!status': "params.getFromStep('a', 'MAESTRO_STEP_STATUS')"
        '!ended<long>': "params.getFromStep('a', 'MAESTRO_STEP_END_TIME')"
        '!own': "params.getFromStep('step_id') + '/' + params.getFromStep('step_attempt_id')"
        '!instance': "params.getFromInstance('workflow_id') + '/' + params.getFromInstance('workflow_instance_id')"
        '!policy': "params.getFromInstance('RUN_POLICY')"
        '!who': "params.getFromInstance('INITIATOR_RUNNER_NAME')"
        '!unique': "params.nextUniqueId()"
        '!where': "params.getExecutionEnvironment()"
        text: "rows=${a__rows}"
  dag: sequential
""")
    playground.script.parts["a"] = Outcome(State.DONE, {"rows": 10})
    run = playground.start(initiator=Initiator(user="ann"))
    found = {name: kept.get("result") for name, kept in playground.attempt(run, "b").params.items()}
    assert found["by_name"] == 11
    assert found["by_function"] == 12
    assert found["status"] == "SUCCEEDED"
    assert found["ended"] == playground.clock()
    assert found["own"] == "b/1"
    assert found["instance"] == "w/1"
    assert found["policy"] == "START_FRESH_NEW_RUN"
    assert found["who"] == "ann"
    assert found["where"] == "local"
    assert found["text"] == "rows=10"
    assert found["workflow_instance_id"] == 1
    assert found["step_instance_uuid"] == playground.attempt(run, "b").uuid


def test_a_step_may_ask_for_the_status_of_one_that_never_ran(playground: Playground) -> None:
    """UNSATISFIED and NOT_CREATED are answers; a step that does not exist is an error."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep, never: false, transition: ["IF never THEN b", c]}
    - job: {id: b, type: Sleep, transition: [c]}
    - job: {id: c, type: Sleep, '!b': "params.getFromStep('b', 'MAESTRO_STEP_STATUS')", transition: [d]}
    - job: {id: d, type: Sleep, '!e': "params.getFromStep('e', 'MAESTRO_STEP_STATUS')", transition: [e]}
    - job: {id: e, type: Sleep}
""")
    run = playground.start()
    assert playground.result(run, "c", "b") == "UNSATISFIED"
    assert playground.result(run, "d", "e") == "NOT_CREATED"


def test_a_secret_reaches_the_work_and_nothing_else(playground: Playground) -> None:
    """Not the store, not the log, not the params that others see."""
    playground.push("""
Workflow:
  id: w
  token<secret>: TOKEN
  jobs:
    - job: {id: a, type: Sleep, password<secret>: PASSWORD, header: "Bearer ${token}", seen: ''}
""")
    playground.secrets |= {"TOKEN": "s3cr3t-token", "PASSWORD": "pa55word"}
    seen: list[Any] = []

    def work(context: StepContext) -> Outcome:
        seen.append((context.params["password"], context.params["header"], context.workflow_params["token"]))
        context.log("using pa55word and s3cr3t-token")
        return DONE

    playground.script.parts["a"] = work
    run = playground.start()
    assert run.status is RunStatus.SUCCEEDED
    assert seen == [("pa55word", "Bearer s3cr3t-token", "***")]
    attempt = playground.attempt(run, "a")
    assert playground.log(attempt) == "using *** and ***\n"
    for stored in (str(attempt), str(run)):
        assert "s3cr3t-token" not in stored
        assert "pa55word" not in stored


def test_a_secret_without_text_fails_the_step(playground: Playground) -> None:
    """Before any work is begun."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep, 'p<secret>': MISSING}}]}")
    run = playground.start()
    assert playground.statuses(run) == {"a": S.FATALLY_FAILED}
    assert "The secret [MISSING] does not exist. calve secret set MISSING, or" in str(playground.told(run, "a"))
    assert playground.script.calls == []


@pytest.mark.parametrize(
    ("workflow_id", "is_for_it"),
    [("sales.eu.daily", True), ("sales.eu.de.daily", True), ("sales.us.daily", False), ("sales.daily", False)],
)
def test_only_workflows_of_its_namespace_can_use_a_secret(
    playground: Playground, workflow_id: str, *, is_for_it: bool
) -> None:
    """And of those below it, as a role is; a loop in a workflow is part of it."""
    playground.secrets["sales.eu.password"] = "pa55word"
    playground.push(f"""
Workflow:
  id: {workflow_id}
  jobs:
    - foreach:
        id: loop
        ranges: {{i: {{from: 0, to: 1}}}}
        jobs:
          - job: {{id: a, type: Sleep, 'p<secret>': sales.eu.password}}
""")
    run = playground.start(workflow_id)
    assert run.status is (RunStatus.SUCCEEDED if is_for_it else RunStatus.FAILED)
    assert bool(playground.script.calls) is is_for_it


def test_passing_the_name_of_a_secret_to_a_workflow_does_not_grant_it(playground: Playground) -> None:
    """By a workflow of its namespace, or by whoever starts it."""
    playground.secrets["sales.password"] = "pa55word"
    playground.push("Workflow: {id: ops.load, 'p<secret>': none, jobs: [{job: {id: a, type: Sleep, x: '${p}'}}]}")
    call = "subworkflow: {id: call, workflow_id: ops.load, 'p<secret>': sales.password}"
    playground.push(f"Workflow: {{id: sales.daily, jobs: [{{{call}}}]}}")
    assert playground.start("sales.daily").status is RunStatus.FAILED
    assert playground.start("ops.load", params={"p": "sales.password"}).status is RunStatus.FAILED
    for number in (1, 2):
        run = playground.state.run("ops.load", number)
        assert run is not None
        assert "is for workflows of the namespace sales; ops.load is not one of them" in playground.told(run, "a")
    assert playground.script.calls == []


def test_a_secret_cannot_be_given(playground: Playground) -> None:
    """An output in its place would be stored in clear."""
    playground.secrets["PASSWORD"] = "pa55word"
    status, told, _ = given(playground, {"password": "my words"}, "'password<secret>': PASSWORD")
    assert status is S.FATALLY_FAILED
    assert "outputs are stored in plain text" in told
    assert "my words" not in str(playground.attempt(playground.state.instances()[0], "a"))


HALF = "\ud83d"


@pytest.mark.parametrize(
    ("outcome", "place"),
    [
        (Outcome(State.DONE, {"out": HALF}), "outputs.out"),
        (Outcome(State.DONE, {"out": ["a", HALF]}), r"outputs.out\[1\]"),
        (Outcome(State.DONE, {"out": {"type": "STRING", "value": "\0"}}), "outputs.out.value"),
        (Outcome(State.DONE, artifacts={"seen": {"x": HALF}}), "artifacts.seen.x"),
    ],
)
def test_an_output_that_is_not_text_fails_the_step(playground: Playground, outcome: Outcome, place: str) -> None:
    """At once, with its place; the instance can be read."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep, out: none}}]}")
    playground.script.parts["a"] = outcome
    run = playground.start()
    assert playground.statuses(run)["a"] is StepStatus.FATALLY_FAILED
    assert re.search(f"{place} holds", playground.told(run, "a"))
    assert HALF not in json.dumps(playground.attempt(run, "a").artifacts, ensure_ascii=False)


def test_a_failure_with_outputs_that_are_not_text_is_the_failure_that_it_is(playground: Playground) -> None:
    """It is tried again as any other; its message is kept, with a mark for what is no character."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep, out: none}}]}")
    broken = Outcome(State.USER_ERROR, {"out": HALF}, message=f"so {HALF}")
    playground.script.parts["a"] = [broken, Outcome(State.DONE)]
    run = playground.start()
    assert "so \ufffd" in playground.told(run, "a")
    playground.advance(600)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def test_whatever_is_asked_of_the_engine_is_text(playground: Playground) -> None:
    """Params, tags, reasons, comments, outputs, signals, properties, definitions."""
    playground.push("Workflow: {id: w, x: a, jobs: [{job: {id: a, type: Sleep, out: none}}]}")
    engine = playground.engine
    playground.script.parts["a"] = BUSY
    run = playground.start()
    here = playground.address(run)
    attempt = playground.attempt(run, "a").uuid
    definition = load("Workflow: {id: v, x: a, jobs: [{job: {id: a, type: NoOp}}]}", name="v", vocabulary=installed())
    pushed = definition.required()
    bad = pushed.workflow.params["x"].model_copy(update={"value": HALF})
    workflow = pushed.workflow.model_copy(update={"params": {"x": bad}})
    doors: dict[str, Callable[[], object]] = {
        "run_params.x": lambda: engine.start("w", params={"x": HALF}),
        "run_params.x.value": lambda: engine.start("w", definitions={"x": {"type": "STRING", "value": HALF}}),
        "tags": lambda: engine.start("w", tags=(HALF,)),
        "step_run_params.a.out": lambda: engine.restart(here, step_params={"a": {"out": HALF}}),
        "reason": lambda: engine.stop(here, reason=HALF),
        "comment": lambda: engine.approve(here, by="me", comment=HALF),
        "params.out": lambda: engine.put_outputs(attempt, {"out": HALF}),
        "artifacts.x": lambda: engine.put_outputs(attempt, {}, {"x": HALF}),
        "description": lambda: engine.change_properties("w", {"description": HALF}),
        "tag": lambda: engine.tag("w", HALF),
        "workflow.params.x.value": lambda: engine.push(pushed.model_copy(update={"workflow": workflow})),
        "payload.x": lambda: Announcement("s", payload={"x": HALF}),
    }
    for place, ask in doors.items():
        with pytest.raises(RequestInvalid, match=f"{re.escape(place)}.* holds"):
            ask()
    with pytest.raises(RequestInvalid, match="tag holds"):
        engine.limit_tag("\0", 1)
    engine.stop(here)
    playground.settle()
