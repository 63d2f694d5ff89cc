"""Maestro's documents: every field of its models is in an answer of ours, or left out for a reason that is told.

The fields are those of the public source (commit abdbdad), in its order. The answers are those of a real server to a
workflow with a foreach, a subworkflow, a while, signals, a retry and a failure.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.engines import FATAL_ERROR, START, USER_ERROR, Playground
from tests.servers import Site, site_on

from calve.definition.params import InitiatorType
from calve.engine import Initiator, Outcome, State, StepContext, views as models
from calve.engine.views import Document
from calve.operations import models as answers

MAESTRO: dict[type[Document], str] = {
    models.WorkflowInstance: (
        "workflow_id workflow_instance_id workflow_run_id workflow_uuid correlation_id workflow_version_id group_info "
        "internal_id execution_id run_config run_params step_run_params run_properties runtime_workflow runtime_dag "
        "timeout_in_millis params initiator status request_time create_time start_time end_time modify_time "
        "runtime_overview artifacts timeline aggregated_info"
    ),
    models.StepInstance: (
        "workflow_id workflow_instance_id workflow_run_id step_id step_attempt_id workflow_uuid step_uuid "
        "correlation_id step_instance_id workflow_version_id group_info owner definition tags step_run_params "
        "restart_config params transition step_retry timeout_in_millis runtime_state signal_dependencies "
        "signal_outputs artifacts timeline"
    ),
    models.RuntimeState: (
        "status create_time initialize_time pause_time wait_signal_time evaluate_param_time wait_permit_time "
        "start_time execute_time finish_time end_time modify_time"
    ),
    models.StepRetry: (
        "error_retries error_retry_limit platform_retries platform_retry_limit timeout_retries timeout_retry_limit "
        "manual_retries retryable backoff"
    ),
    models.InstanceTransition: "predecessors successors",
    models.RunConfig: "runtime_tags correlation_id policy restart_config",
    models.RestartConfig: (
        "restart_path restart_policy downstream_policy restart_params step_restart_params skip_steps"
    ),
    models.RunProperties: "create_time owner alerting step_concurrency tags",
    models.RuntimeOverview: "total_step_count step_overview rollup_overview run_status",
    models.StatusSummary: "cnt steps",
    models.RollupOverview: "total_leaf_count overview",
    models.CountReference: "cnt ref",
    models.AggregatedInfo: "workflow_instance_status step_aggregated_views",
    models.StepAggregatedView: "workflow_run_id status start_time end_time",
    models.InitiatorDocument: ("ancestors trigger_uuid trigger_time timezone signal_id_map params depth type user"),
    models.ForeachArtifact: (
        "foreach_workflow_id foreach_identity foreach_run_id run_policy run_id ancestor_iteration_count "
        "total_loop_count next_loop_index foreach_overview pending_action type"
    ),
    models.ForeachOverview: "checkpoint stats running_stats rollup running_rollup details restart_info",
    models.WhileArtifact: (
        "loop_workflow_id loop_identity loop_run_id run_policy run_id first_iteration last_iteration last_status "
        "last_overview rollup loop_param_values type"
    ),
    models.SubworkflowArtifact: (
        "subworkflow_id subworkflow_version_id subworkflow_instance_id subworkflow_run_id subworkflow_uuid "
        "subworkflow_overview type"
    ),
    models.NotebookArtifact: "output_path type",
    models.HttpArtifact: "request status status_code body type",
    models.KubernetesArtifact: "job_id execution_script execution_output command type",
    models.SignalDependencies: "dependencies info",
    models.SignalOutputs: "outputs info",
    models.SignalOutput: "name params payload signal_id announce_time",
    models.LogEvent: "timestamp type level message",
    models.StatusEvent: "timestamp type status",
    models.ActionEvent: "timestamp type action author message reason info",
    models.WorkflowTimeline: "workflow_id timeline_events",
    models.WorkflowTimelineEvent: "author log timestamp",
    models.StartResponse: (
        "workflow_id workflow_version_id workflow_instance_id workflow_run_id workflow_uuid status timeline_event"
    ),
    models.StepRestartResponse: (
        "workflow_id workflow_version_id workflow_instance_id workflow_run_id step_id step_attempt_id status "
        "timeline_event"
    ),
    models.SignalInstance: "name seq_id instance_id params payload request_time create_time",
    answers.WorkflowDefinition: (
        "properties_snapshot metadata workflow is_active activate_time activated_by is_latest is_default internal_id "
        "enriched_extras modify_time"
    ),
    answers.PropertiesSnapshot: (
        "workflow_id create_time author owner access_control run_strategy step_concurrency alerting alerting_disabled "
        "signal_trigger_disabled time_trigger_disabled description tags"
    ),
    answers.Metadata: "workflow_id workflow_version_id create_time version_author git_info",
    answers.DefinitionExtras: "workflow_params step_params next_execution_time next_execution_times",
    answers.WorkflowOverview: (
        "workflow_id active_version_id latest_version_id default_version_id properties_snapshot step_concurrency "
        "nonterminal_instances failed_instances latest_instance_id"
    ),
    answers.WorkflowAction: "workflow_id workflow_version_id timeline_event",
    answers.InstanceAction: (
        "workflow_id workflow_instance_id workflow_run_id workflow_instance_status info timeline_event completed"
    ),
    answers.StepAction: (
        "workflow_id workflow_instance_id workflow_run_id step_id step_attempt_id step_runtime_state timeline_event"
    ),
    answers.StepBreakpoint: (
        "workflow_id step_id workflow_version_id workflow_instance_id workflow_run_id step_attempt_id create_time "
        "created_by"
    ),
    answers.BreakpointDeleted: "workflow_id step_id timeline_event",
    answers.PausedAttempt: (
        "workflow_id workflow_version_id workflow_instance_id workflow_run_id step_id step_attempt_id create_time"
    ),
    answers.TagPermit: "tag max_allowed timeline",
}
"""The fields of Maestro's models, as its JSON names and orders them."""
OURS = {
    "PendingApproval",
    "PlannedStepDocument",
    "RestartPlanDocument",
    "RunReference",
    "StepNotCreated",
    "StepProgress",
}
"""Documents that Maestro has nothing like."""


@pytest.mark.parametrize("model", MAESTRO, ids=lambda model: model.__name__)
def test_a_document_has_every_field_or_says_why_not(model: type[Document]) -> None:
    """In Maestro's order; what is ours is named as that."""
    wanted = MAESTRO[model].split()
    ours = [name for name in model.names() if name not in model.ADDED]
    assert [name for name in wanted if name not in model.LEFT_OUT] == ours
    assert set(model.LEFT_OUT) <= set(wanted)
    assert not set(model.ADDED) & set(wanted)
    assert all([*model.ADDED.values(), *model.LEFT_OUT.values()])


def test_every_document_is_compared() -> None:
    """None is without its list of fields."""
    assert {model.__name__ for model in set(_models(Document)) - set(MAESTRO)} == OURS
    assert set(MAESTRO) <= set(_models(Document))


def _models(model: type[Document]) -> Iterator[type[Document]]:
    for one in model.__subclasses__():
        if "__slots__" in vars(one):  # the decorator leaves the class without slots behind
            yield one


# A run of everything.

CHILD = {
    "properties": {"owner": "ann"},
    "workflow": {
        "id": "child",
        "params": {"given": {"type": "STRING", "value": ""}},
        "steps": [{"step": {"id": "inner", "type": "Sleep"}}],
    },
}
LOOP = {"type": "MAP", "value": {"i": {"type": "LONG_ARRAY", "value": [1, 2, 3]}}}
EVERYTHING: dict[str, Any] = {
    "properties": {
        "owner": {"name": "ann", "team": "data"},
        "run_strategy": "parallel",
        "step_concurrency": 9,
        "description": "All that there is.",
        "tags": ["gold"],
        "alerting": {"emails": ["ann@example.com"]},
        "alerting_disabled": True,
        "signal_trigger_disabled": False,
        "time_trigger_disabled": False,
        "access_control": {"group": "data"},
    },
    "git_info": {"branch": "main"},
    "source": "test",
    "workflow": {
        "id": "all",
        "timeout": "2 hours",
        "tags": ["bronze"],
        "params": {"day": {"type": "LONG", "value": 1}},
        "steps": [
            {
                "step": {
                    "id": "first",
                    "type": "Sleep",
                    "timeout": "1 hour",
                    "tags": [{"name": "slow", "namespace": "USER_DEFINED", "level": 3}],
                    "retry_policy": {"error_retry_limit": "${day}", "backoff": {"type": "FIXED_BACKOFF"}},
                    "transition": {"successors": {"waits": "day == 1", "never": "day == 2"}},
                    "signal_outputs": [{"name": "ready", "params": {"day": {"type": "LONG", "expression": "day"}}}],
                }
            },
            {"step": {"id": "never", "type": "NoOp"}},
            {
                "step": {
                    "id": "waits",
                    "type": "NoOp",
                    "signal_dependencies": [
                        {"name": "go", "match_params": {"n": {"param": {"type": "LONG", "value": 5}, "operator": ">="}}}
                    ],
                    "transition": {"successors": {"sub": "true"}},
                }
            },
            {
                "subworkflow": {
                    "id": "sub",
                    "transition": {"successors": {"again": "true"}},
                    "params": {
                        "subworkflow_id": {"type": "STRING", "value": "child"},
                        "subworkflow_version": {"type": "STRING", "value": "latest"},
                    },
                }
            },
            {
                "while": {
                    "id": "again",
                    "condition": "left > 0",
                    "transition": {"successors": {"each": "true"}},
                    "params": {"loop_params": {"type": "MAP", "value": {"left": {"type": "LONG", "value": 2}}}},
                    "steps": [
                        {
                            "step": {
                                "id": "less",
                                "type": "NoOp",
                                "params": {"left": {"type": "LONG", "expression": "left - 1"}},
                            }
                        }
                    ],
                }
            },
            {
                "foreach": {
                    "id": "each",
                    "concurrency": 2,
                    "params": {"loop_params": LOOP},
                    "steps": [
                        {"step": {"id": "job", "type": "Sleep", "params": {"n": {"type": "LONG", "expression": "i"}}}}
                    ],
                }
            },
        ],
    },
}


@dataclass
class Seen:
    """Documents by the model that they are of, as they came from the server."""

    found: dict[type[Document], list[Any]] = field(default_factory=lambda: defaultdict(list))

    def add(self, model: type[Document], *documents: Any) -> None:
        """Keep documents; one that is not there is none."""
        self.found[model] += [document for document in documents if document is not None]

    def add_instance(self, instance: Any) -> None:
        """Keep an instance, and the documents inside it."""
        self.add(models.WorkflowInstance, instance)
        self.add(models.InitiatorDocument, instance["initiator"])
        self.add(models.RunProperties, instance["run_properties"])
        self.add(models.RunConfig, instance["run_config"])
        self.add(models.RestartConfig, instance["run_config"].get("restart_config"))
        self.add_overview(instance.get("runtime_overview"))
        self.add_timeline(instance.get("timeline", ()))
        info = instance.get("aggregated_info")
        self.add(models.AggregatedInfo, info)
        self.add(models.StepAggregatedView, *(info["step_aggregated_views"].values() if info else ()))

    def add_overview(self, overview: Any) -> None:
        """Keep the overview of a run."""
        self.add(models.RuntimeOverview, overview)
        if overview:
            self.add(models.StatusSummary, *overview["step_overview"].values())
            self.add_rollup(overview["rollup_overview"])

    def add_rollup(self, rollup: Any) -> None:
        """Keep leaf steps."""
        self.add(models.RollupOverview, rollup)
        self.add(models.CountReference, *(rollup.get("overview", {}).values() if rollup else ()))

    def add_timeline(self, timeline: Any) -> None:
        """Keep events."""
        kinds = {"LOG": models.LogEvent, "STATUS": models.StatusEvent, "ACTION": models.ActionEvent}
        for event in timeline:
            self.add(kinds[event["type"]], event)

    def add_step(self, step: Any) -> None:
        """Keep a step, and the documents inside it."""
        self.add(models.StepInstance, step)
        self.add(models.RuntimeState, step["runtime_state"])
        self.add(models.StepRetry, step["step_retry"])
        self.add(models.InstanceTransition, step["transition"])
        self.add(models.RestartConfig, step.get("restart_config"))
        self.add(models.SignalDependencies, step.get("signal_dependencies"))
        self.add(models.SignalOutputs, step.get("signal_outputs"))
        self.add(models.SignalOutput, *step.get("signal_outputs", {}).get("outputs", ()))
        self.add_timeline(step["timeline"])
        kept = step["artifacts"]
        self.add(models.NotebookArtifact, kept.get("maestro_notebook"))
        self.add(models.HttpArtifact, kept.get("maestro_http"))
        self.add(models.KubernetesArtifact, kept.get("maestro_kubernetes"))
        self.add(models.SubworkflowArtifact, kept.get("maestro_subworkflow"))
        self.add_overview(kept.get("maestro_subworkflow", {}).get("subworkflow_overview"))
        self.add(models.WhileArtifact, kept.get("maestro_while"))
        self.add_overview(kept.get("maestro_while", {}).get("last_overview"))
        self.add(models.ForeachArtifact, kept.get("maestro_foreach"))
        overview = kept.get("maestro_foreach", {}).get("foreach_overview")
        self.add(models.ForeachOverview, overview)
        for part in ("rollup", "running_rollup") if overview else ():
            self.add_rollup(overview.get(part))

    def add_version(self, version: Any) -> None:
        """Keep a version, and the documents inside it."""
        self.add(answers.WorkflowDefinition, version)
        self.add(answers.PropertiesSnapshot, version["properties_snapshot"])
        self.add(answers.Metadata, version["metadata"])
        self.add(answers.DefinitionExtras, version.get("enriched_extras"))


def _job(context: StepContext) -> Outcome:
    """Let the second iteration fail."""
    return FATAL_ERROR if context.params["n"] == 2 else Outcome(State.DONE)


@pytest.fixture
def site(playground: Playground) -> Iterator[Site]:
    """Give a server on an empty state database."""
    with site_on(playground) as site:
        yield site


@pytest.fixture
def ended(site: Site) -> Site:
    """Run everything to its end: FAILED, because an iteration of the foreach is."""
    playground = site.playground
    site.post("/workflows", CHILD)
    site.post("/workflows", EVERYTHING)
    playground.script.parts |= {"first": [USER_ERROR, Outcome(State.DONE)], "job": _job}
    site.start("all", run_params={"day": {"type": "LONG", "value": 1}}, runtime_tags=["night"])
    playground.settle()
    playground.advance(3_600)
    site.post("/signals", {"name": "go", "params": {"n": 7}})
    playground.settle()
    assert site.get("/workflows/all/instances/1")["status"] == "FAILED"
    return site


def _step(site: Site, path: str, instance: int = 1) -> Any:
    return site.get(f"/workflows/all/instances/{instance}/steps/{path}")


def test_an_instance_carries_maestros_body(ended: Site) -> None:
    """What it was started with, what it follows, where it stands."""
    run = ended.get("/workflows/all/instances/1")
    assert run["correlation_id"] == run["workflow_uuid"]
    assert run["run_config"] == {
        "policy": "START_FRESH_NEW_RUN",
        "runtime_tags": [{"name": "night", "namespace": "RUNTIME"}],
    }
    assert run["run_params"]["day"] == {"type": "LONG", "value": 1}
    properties = run["run_properties"]
    assert (properties["owner"], properties["step_concurrency"]) == ("ann", 9)
    assert properties["tags"] == [{"name": "gold"}]
    assert run["runtime_workflow"]["id"] == "all"
    assert run["runtime_workflow"]["tags"] == ["bronze", {"name": "night", "namespace": "RUNTIME"}]
    assert run["runtime_dag"]["waits"] == {"predecessors": ["first"], "successors": {"sub": "true"}}
    assert run["timeout_in_millis"] == 7_200_000
    assert run["params"]["day"]["evaluated_result"] == 1
    assert run["params"]["RUN_TS"]["source"] == "SYSTEM_DEFAULT"
    assert run["request_time"] == run["create_time"] == START
    assert run["modify_time"] == run["end_time"]
    statuses = [event["status"] for event in run["timeline"] if event["type"] == "STATUS"]
    assert statuses == ["CREATED", "IN_PROGRESS", "FAILED"]
    assert run["timeline"][0] == {
        "timestamp": START,
        "type": "LOG",
        "level": "INFO",
        "message": "Started by local.",
    }
    rollup = run["runtime_overview"]["rollup_overview"]
    loop = _step(ended, "each")["artifacts"]["maestro_foreach"]["foreach_workflow_id"]
    assert rollup == {
        "total_leaf_count": 8,
        "overview": {
            "UNSATISFIED": {"cnt": 1},
            "SUCCEEDED": {"cnt": 6},
            "FATALLY_FAILED": {"cnt": 1, "ref": {f"{loop}:1": ["2:job:1"]}},
        },
    }


def test_a_step_carries_maestros_body(ended: Site) -> None:
    """Its definition, its edges, its retries, the signals that it waited for and sent."""
    run = ended.get("/workflows/all/instances/1")
    step = _step(ended, "first")
    assert step["definition"]["step"]["id"] == "first"
    assert step["workflow_uuid"] == run["workflow_uuid"]
    assert step["step_uuid"] == step["step_instance_uuid"]
    assert (step["correlation_id"], step["workflow_version_id"]) == (run["correlation_id"], 1)
    assert (step["owner"], step["timeout_in_millis"]) == ("ann", 3_600_000)
    assert step["tags"] == [{"name": "slow", "namespace": "USER_DEFINED", "level": 3}]
    edges = step["transition"]["successors"]
    assert {target: edge["evaluated_result"] for target, edge in edges.items()} == {"waits": True, "never": False}
    assert edges["waits"]["expression"] == "day == 1"
    assert step["step_retry"] == {
        "error_retries": 1,
        "error_retry_limit": 1,
        "platform_retries": 0,
        "platform_retry_limit": 10,
        "timeout_retries": 0,
        "timeout_retry_limit": 0,
        "retryable": True,
        "backoff": {
            "error_retry_backoff_in_secs": 60,
            "platform_retry_backoff_in_secs": 60,
            "timeout_retry_backoff_in_secs": 60,
            "type": "FIXED_BACKOFF",
        },
    }
    (sent,) = step["signal_outputs"]["outputs"]
    assert (sent["name"], sent["params"], sent["signal_id"]) == ("ready", {"day": 1}, 1)
    statuses = [event["status"] for event in step["timeline"] if event["type"] == "STATUS"]
    assert statuses[0] == "CREATED"
    assert statuses[-2:] == ["RUNNING", "SUCCEEDED"]
    failed = ended.get("/workflows/all/instances/1/runs/1/steps/first/attempts/1")
    assert failed["timeline"][-1] == {
        "timestamp": failed["runtime_state"]["end_time"],
        "type": "STATUS",
        "status": "USER_FAILED",
    }
    (_, said) = [event for event in failed["timeline"] if event["type"] == "LOG"]
    assert (said["level"], said["message"]) == ("ERROR", "wrong input")
    waits = _step(ended, "waits")
    assert waits["transition"]["predecessors"] == ["first"]
    (dependency,) = waits["signal_dependencies"]["dependencies"]
    assert (dependency["status"], dependency["signal_id"]) == ("MATCHED", 1)
    assert dependency["match_params"] == {"n": {"value": 5, "operator": ">="}}
    assert _step(ended, "again/1/less")["definition"]["step"]["id"] == "less"


def test_loops_and_subworkflows_have_maestros_artifacts(ended: Site) -> None:
    """With rollups of all that is inside them."""
    run = ended.get("/workflows/all/instances/1")
    sub = _step(ended, "sub")["artifacts"]["maestro_subworkflow"]
    child = ended.get("/workflows/child/instances/1")
    overview = sub.pop("subworkflow_overview")
    assert sub == {
        "subworkflow_id": "child",
        "subworkflow_version_id": 1,
        "subworkflow_instance_id": 1,
        "subworkflow_run_id": 1,
        "subworkflow_uuid": child["workflow_uuid"],
        "type": "SUBWORKFLOW",
    }
    assert overview == child["runtime_overview"]
    assert overview["rollup_overview"] == {"total_leaf_count": 1, "overview": {"SUCCEEDED": {"cnt": 1}}}
    assert child["correlation_id"] == run["correlation_id"]
    (ancestor,) = child["initiator"]["ancestors"]
    assert ancestor == {
        "workflow_id": "all",
        "instance_id": 1,
        "run_id": 1,
        "step_id": "sub",
        "step_attempt_id": 1,
    }
    again = _step(ended, "again")["artifacts"]["maestro_while"]
    assert (again["first_iteration"], again["last_iteration"], again["last_status"]) == (1, 2, "SUCCEEDED")
    assert again["loop_param_values"] == {"left": [2, 1]}
    assert again["rollup"] == {"total_leaf_count": 1, "overview": {"SUCCEEDED": {"cnt": 1}}}
    assert again["last_overview"]["rollup_overview"]["total_leaf_count"] == 1
    step = _step(ended, "each")
    each = step["artifacts"]["maestro_foreach"]
    assert each["foreach_identity"] == f"[all][1][1][each][1][{step['step_uuid']}]"
    assert (each["total_loop_count"], each["next_loop_index"], each["run_policy"]) == (3, 2, "START_FRESH_NEW_RUN")
    name = each["foreach_workflow_id"]
    assert each["foreach_overview"] == {
        "checkpoint": 2,
        "stats": {"SUCCEEDED": 1, "FAILED": 1},
        "rollup": {
            "total_leaf_count": 2,
            "overview": {
                "SUCCEEDED": {"cnt": 1},
                "FATALLY_FAILED": {"cnt": 1, "ref": {f"{name}:1": ["2:job:1"]}},
            },
        },
        "details": {"SUCCEEDED": [1], "FAILED": [2]},
    }
    iteration = ended.get(f"/workflows/{name}/instances/2")
    assert iteration["runtime_workflow"]["id"] == name
    assert list(iteration["runtime_dag"]) == ["job"]
    assert [each["step_id"] for each in iteration["initiator"]["ancestors"]] == ["each"]


def test_lists_have_no_more_than_they_can_afford(ended: Site) -> None:
    """What needs a query for each element stands in the document of one."""
    (listed,) = ended.get("/workflows/all/instances")["elements"]
    alone = ended.get("/workflows/all/instances/1")
    assert alone.keys() - listed.keys() == models.WorkflowInstance.ALONE | {
        "steps",
        "failures",
        "waiting",
        "waiting_count",
        "progress",
    }
    assert listed.items() <= alone.items()
    steps = {step["step_id"]: step for step in ended.get("/workflows/all/instances/1/steps")}
    for step_id, key, model in (
        ("sub", "maestro_subworkflow", models.SubworkflowArtifact),
        ("each", "maestro_foreach", models.ForeachArtifact),
        ("again", "maestro_while", models.WhileArtifact),
    ):
        whole, part = _step(ended, step_id)["artifacts"][key], steps[step_id]["artifacts"][key]
        assert whole.keys() - part.keys() == model.ALONE
    first = {**steps["first"], "artifacts": {}}
    assert first == {**_step(ended, "first"), "artifacts": {}}


def test_a_restart_shows_which_run_a_step_is_of(ended: Site) -> None:
    """Steps that it leaves as they are keep their run; what it asked for stands in its config."""
    ended.playground.script.parts["job"] = Outcome(State.DONE)
    body = {"restart_policy": "RESTART_FROM_INCOMPLETE", "step_run_params": {"each": {"more": 1}}}
    again = ended.post("/workflows/all/instances/1/actions/restart", body)
    assert again["timeline_event"]["message"] == "Started by local."
    ended.playground.settle()
    run = ended.get("/workflows/all/instances/1")
    assert (run["status"], run["workflow_run_id"]) == ("SUCCEEDED", 2)
    config = run["run_config"]["restart_config"]
    assert config["restart_path"] == [{"workflow_id": "all", "instance_id": 1, "step_id": None}]
    assert config["step_restart_params"] == run["step_run_params"] == {"each": {"more": {"type": "LONG", "value": 1}}}
    assert run["correlation_id"] != run["workflow_uuid"]
    views = run["aggregated_info"]["step_aggregated_views"]
    assert (views["first"]["workflow_run_id"], views["each"]["workflow_run_id"]) == (1, 2)
    steps = {step["step_id"]: step for step in run["steps"]}
    assert (steps["first"]["workflow_run_id"], steps["each"]["workflow_run_id"]) == (1, 2)
    assert steps["each"]["step_run_params"] == {"more": {"type": "LONG", "value": 1}}
    assert _step(ended, "first")["workflow_run_id"] == 1
    assert run["runtime_overview"]["rollup_overview"]["overview"]["SUCCEEDED"]["cnt"] == 8
    each = _step(ended, "each")["artifacts"]["maestro_foreach"]["foreach_overview"]
    assert (each["stats"], each["details"]) == ({"SUCCEEDED": 3}, {"SUCCEEDED": [[1, 3]]})
    assert each["rollup"] == {"total_leaf_count": 3, "overview": {"SUCCEEDED": {"cnt": 3}}}


def test_a_live_loop_tells_what_runs(site: Site) -> None:
    """Iterations that are over are counted apart from the others."""
    site.post(
        "/workflows", {**CHILD, "workflow": {**EVERYTHING["workflow"], "steps": EVERYTHING["workflow"]["steps"][-1:]}}
    )
    site.playground.script.parts["job"] = lambda context: (
        Outcome(State.DONE) if context.params["n"] == 1 else Outcome(State.CONTINUE, poll_after=3_600)
    )
    site.start("all")
    site.playground.settle()
    each = _step(site, "each")["artifacts"]["maestro_foreach"]
    name, overview = each["foreach_workflow_id"], each["foreach_overview"]
    assert (overview["checkpoint"], overview["stats"]) == (1, {"SUCCEEDED": 1})
    assert overview["running_stats"] == {"IN_PROGRESS": 2}
    assert overview["rollup"] == {"total_leaf_count": 1, "overview": {"SUCCEEDED": {"cnt": 1}}}
    assert overview["running_rollup"] == {
        "total_leaf_count": 2,
        "overview": {"RUNNING": {"cnt": 2, "ref": {f"{name}:1": ["2:job:1", "3:job:1"]}}},
    }
    assert overview["details"] == {"SUCCEEDED": [1], "IN_PROGRESS": [[2, 3]]}


def test_triggers_are_initiators_as_in_maestro(site: Site) -> None:
    """A schedule and signals say which they were."""
    site.post("/workflows", CHILD)
    playground = site.playground
    time = {"trigger_id": "time", "trigger_uuid": "t-1", "scheduled_at": START}
    signals = {"trigger_id": "signal", "trigger_uuid": "s-1", "signal_ids": {"go": 3}, "params": {"n": 7}}
    playground.start("child", initiator=Initiator(InitiatorType.TIME, timezone="UTC", trigger=time))
    playground.start("child", initiator=Initiator(InitiatorType.SIGNAL, trigger=signals))
    first, second = (site.get(f"/workflows/child/instances/{number}") for number in (1, 2))
    assert first["initiator"] == {
        "type": "TIME",
        "depth": 0,
        "timezone": "UTC",
        "trigger_uuid": "t-1",
        "trigger_time": START,
        "trigger": time,
    }
    assert (second["initiator"]["signal_id_map"], second["initiator"]["trigger_uuid"]) == ({"go": 3}, "s-1")
    assert first["timeline"][0]["message"] == "Started by the time trigger time."


WORK = """
Workflow:
  id: work
  jobs:
    - job: {id: book, type: Notebook, notebook: {input_path: a.ipynb}}
    - job: {id: ask, type: Http, http: {url: 'https://host/'}}
    - job: {id: refused, type: Http, failure_mode: IGNORE_FAILURE, http: {url: 'https://host/'}}
    - job: {id: box, type: Kubernetes, kubernetes: {image: python:3}}
"""


def test_the_work_of_steps_has_maestros_artifacts(site: Site) -> None:
    """What Maestro keeps about notebooks, requests and jobs is told by what their steps have given."""
    site.push(WORK)
    answer = {"status_code": 200, "response_body": "yes"}
    site.playground.script.parts |= {
        "book": Outcome(State.DONE, {"output_path": "/out/a.ipynb"}),
        "ask": Outcome(State.DONE, answer),
        "refused": Outcome(State.FATAL_ERROR, {**answer, "status_code": 404}, message="HTTP 404"),
        "box": Outcome(State.DONE, artifacts={"kubernetes": {"job": "job-1"}}),
    }
    site.start("work")
    site.playground.settle()
    kept = {step["step_id"]: step["artifacts"] for step in site.get("/workflows/work/instances/1/steps")}
    assert kept["book"] == {"maestro_notebook": {"output_path": "/out/a.ipynb", "type": "NOTEBOOK"}}
    assert kept["ask"]["maestro_http"].items() >= {"status": "SUCCESS", "status_code": 200, "body": "yes"}.items()
    assert kept["ask"]["maestro_http"]["request"]["url"] == "https://host/"
    assert kept["refused"]["maestro_http"]["status_code"] == 404
    assert kept["box"]["maestro_kubernetes"]["job_id"] == "job-1"
    assert kept["box"]["maestro_kubernetes"]["command"]["image"] == "python:3"


@pytest.mark.parametrize("name", ["maestro_foreach", "maestro_while", "maestro_subworkflow"])
@pytest.mark.parametrize("value", [5, {}, [1], {"loop_workflow_id": "x", "last": "y"}])
def test_an_artifact_of_a_steps_work_is_shown_as_it_is(playground: Playground, name: str, value: Any) -> None:
    """Whatever its name: a program may hand over what it likes, and its instance stays readable."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: job, type: Sleep}}, {job: {id: next, type: NoOp}}]}")
    playground.script.parts["job"] = Outcome(State.DONE, artifacts={name: value})
    with site_on(playground) as site:
        site.start()
        playground.settle()
        assert site.get("/workflows/w/instances/1")["steps"][0]["artifacts"] == {name: value}
        assert site.get("/workflows/w/instances/1/steps/job")["artifacts"] == {name: value}
        site.get("/workflows/w/instances/1/steps/job/1/inner", 404)
        site.get("/workflows/w/instances/1/steps/job/inner", 404)


def test_every_field_is_in_an_answer_and_no_other_is(ended: Site) -> None:
    """Whatever a model declares comes from the server in some case, and nothing comes that it does not declare."""
    seen, playground = Seen(), ended.playground
    seen.add(
        answers.StepBreakpoint, ended.post("/workflows/steps/breakpoints", {"workflow_id": "child", "step_id": "inner"})
    )
    seen.add(models.StartResponse, ended.start("child"))
    playground.settle()
    place = "/workflows/steps/breakpoints"
    which = {"workflowId": "child", "stepId": "inner"}
    seen.add(answers.PausedAttempt, *ended.get(f"{place}/paused-step-attempts", params=which))
    paused = ended.get("/workflows/child/instances/2/steps/inner")
    seen.add(answers.BreakpointDeleted, ended.delete(place, params=which))
    playground.settle()
    seen.add(answers.TagPermit, ended.post("/tag-permits", {"tag": "slow", "max_allowed": 0}))
    ended.start("all")
    playground.settle()
    stop = ended.put("/workflows/all/instances/2/actions/stop", {"reason": "enough"})
    seen.add(answers.InstanceAction, stop)
    seen.add_timeline([stop["timeline_event"]])
    playground.settle()
    seen.add(
        answers.StepAction,
        ended.put("/workflows/all/instances/1/steps/each/actions/skip", {}, params={"blocking": False}),
    )
    playground.settle()
    waited = _step(ended, "first", 2)
    restart = {"step_run_params": {"more": 1}}
    seen.add(models.StepRestartResponse, ended.post("/workflows/all/instances/1/steps/first/actions/restart", restart))
    playground.settle()
    seen.add(models.SignalInstance, ended.get("/signals/go/instances/latest"))
    seen.add(answers.WorkflowAction, ended.put("/workflows/all/versions/1/actions/activate"))
    seen.add(answers.WorkflowOverview, ended.get("/workflows/all/overview"))
    timeline = ended.get("/workflows/all/timeline")
    seen.add(models.WorkflowTimeline, timeline)
    seen.add(models.WorkflowTimelineEvent, *timeline["timeline_events"])
    seen.add_version(ended.get("/workflows/all/versions/1?enriched=true"))
    for run_id in (1, 2, 3):
        seen.add_instance(ended.get(f"/workflows/all/instances/1/runs/{run_id}"))
    playground.start(
        "child", initiator=Initiator(InitiatorType.TIME, "ann", "UTC", {"trigger_uuid": "u", "scheduled_at": 1})
    )
    playground.start("child", initiator=Initiator(InitiatorType.SIGNAL, trigger={"signal_ids": {"go": 1}}))
    for number in (1, 3, 4):
        seen.add_instance(ended.get(f"/workflows/child/instances/{number}"))
    run = "/workflows/all/instances/1/runs/1/steps"
    first = [ended.get(f"{run}/{name}/attempts/latest") for name in ("first", "never", "waits", "sub", "again", "each")]
    for step in (paused, waited, _step(ended, "first"), *first):
        seen.add_step(step)
    ended.push(WORK)
    told = {"status_code": 200, "response_body": "yes"}
    playground.script.parts |= {
        "book": Outcome(State.DONE, {"output_path": "a"}),
        "ask": Outcome(State.DONE, told),
        "box": Outcome(State.DONE, artifacts={"kubernetes": {"job": "j"}}),
    }
    playground.start("work")
    for step in ended.get("/workflows/work/instances/1/steps"):
        seen.add_step(step)
    for model in MAESTRO:
        _compare(model, seen.found[model])


NEVER = {
    models.WorkflowInstance: {"is_queued", "message"},
    models.StepInstance: {"child", "iterations", "next_attempt_time", "worker"},
    models.RuntimeState: {"finish_time"},
    answers.DefinitionExtras: {"next_execution_time", "next_execution_times"},
    answers.PropertiesSnapshot: {"incremental_trigger_disabled"},
    models.RestartConfig: {"restart_params"},
    models.ForeachOverview: {"running_stats", "running_rollup"},
    models.StartResponse: {"warnings"},
    models.StepRestartResponse: {"warnings"},
}
"""What this run brings up nowhere: other tests do, or a definition with triggers."""


def _compare(model: type[Document], documents: list[Any]) -> None:
    assert documents, f"no {model.__name__} was seen"
    keys = {key for document in documents for key in document}
    declared = set(model.names()) | set(model.ADDED)
    extra = {"source"} if model is answers.Metadata else set()
    assert keys - declared - extra == set(), model.__name__
    assert set(model.names()) - keys - NEVER.get(model, set()) == set(), model.__name__
