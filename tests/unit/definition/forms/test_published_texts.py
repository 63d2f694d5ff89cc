"""The workflows of the talk and of Maestro's own repository become what they say."""

from tests.talk_workflows import FIRST, SECOND, THIRD
from tests.unit.definition.forms.writing import written

_QUERY = (
    "INSERT OVERWRITE TABLE ${TARGET_TABLE} SELECT USER_ID, DATE_INT, SUM(watch_time) FROM ${SOURCE_TABLE} "
    "WHERE is_active=true AND DATE_INT > ${DATE_MINUS_7} GROUP BY USER_ID, DATE_INT"
)


def test_a_query_every_day() -> None:
    """The first workflow of the talk: a trigger, a param and a job."""
    found = written(FIRST)
    script = {"type": "STRING", "value": "${my_query}"}
    assert found.plain == {
        "workflow": {
            "id": "demo.pipeline",
            "description": "A sample with a link to [a workflow](https://example.com)",
            "time_triggers": [{"type": "PREDEFINED", "expression": "@daily"}],
            "params": {"my_query": {"type": "STRING", "value": _QUERY}},
            "steps": [
                {
                    "step": {
                        "id": "job.1",
                        "type": "Spark",
                        "params": {"spark": {"type": "MAP", "value": {"script": script}}},
                    }
                }
            ],
        }
    }


def test_a_pipeline_that_mends_itself() -> None:
    """The second workflow of the talk: subworkflows, and a branch on how one of them ended."""
    found = written(SECOND)
    failed = "params.getFromStep('normal_workflow', 'MAESTRO_STEP_STATUS') == 'COMPLETED_WITH_ERROR'"
    demo = {"subworkflow_id": {"type": "STRING", "value": "demo.pipeline"}}
    assert found.plain == {
        "workflow": {
            "id": "auto.remediation.pipeline",
            "steps": [
                {
                    "subworkflow": {
                        "id": "normal_workflow",
                        "failure_mode": "IGNORE_FAILURE",
                        "params": demo,
                        "transition": {"successors": {"check_status": "true"}},
                    }
                },
                {
                    "step": {
                        "id": "check_status",
                        "type": "NoOp",
                        "transition": {"successors": {"recovery": failed, "end": f"!(({failed}))"}},
                    }
                },
                {
                    "subworkflow": {
                        "id": "recovery",
                        "params": {"subworkflow_id": {"type": "STRING", "value": "example.recovery.wf"}},
                        "transition": {"successors": {"re_run": "true"}},
                    }
                },
                {"subworkflow": {"id": "re_run", "params": demo, "transition": {"successors": {"end": "true"}}}},
                {"step": {"id": "end", "type": "NoOp"}},
            ],
        }
    }


def test_the_same_pipeline_made_incremental() -> None:
    """The third workflow of the talk: capture before, commit after, and one param more."""
    found = written(THIRD)
    capture = {
        "source_tables": {"type": "STRING_ARRAY", "value": ["membership_table"]},
        "capture_mode": {"type": "STRING", "value": "ICDC"},
        "data_operations": {"type": "STRING_ARRAY", "value": ["append"]},
    }
    commit = {"capture_step": {"type": "STRING", "value": "capture_change"}}
    assert found.plain == {
        "workflow": {
            "id": "incremental.processing.pipeline",
            "description": "the same pipeline, made incremental by two steps and one parameter",
            "time_triggers": [{"type": "PREDEFINED", "expression": "@daily"}],
            "steps": [
                {
                    "step": {
                        "id": "capture_change",
                        "type": "IpCapture",
                        "params": {"ip_capture": {"type": "MAP", "value": capture}},
                        "transition": {"successors": {"auto.remediation.pipeline": "true"}},
                    }
                },
                {
                    "subworkflow": {
                        "id": "auto.remediation.pipeline",
                        "params": {
                            "SOURCE_TABLE": {"type": "STRING", "value": "${capture_change.icdc_table}"},
                            "my_query": {"type": "STRING", "value": "$S3{my_script.sql}"},
                            "subworkflow_id": {"type": "STRING", "value": "auto.remediation.pipeline"},
                        },
                        "transition": {"successors": {"commit_checkpoint": "true"}},
                    }
                },
                {
                    "step": {
                        "id": "commit_checkpoint",
                        "type": "IpCommit",
                        "params": {"ip_commit": {"type": "MAP", "value": commit}},
                    }
                },
            ],
        }
    }


def test_a_conditional_workflow_in_open_source_yaml() -> None:
    """Maestro's sample: transitions on the jobs themselves, an expression, and a run strategy."""
    found = written("""
        Workflow:
          id: "sample-conditional-wf"
          owner: tester
          run_strategy: parallel
          param0: 15
          jobs:
            - job: {id: "job.1", type: "NoOp", transition: [job.3]}
            - job: {id: "job.3", type: "NoOp", param2: 15, transition: ["IF param2 < 0 THEN job.4", "OTHERWISE job.7"]}
            - job: {id: "job.4", type: "NoOp"}
            - job: {id: "job.7", type: "NoOp", '!param5': "params.get('param0')"}
        """)
    assert found.plain == {
        "properties": {"owner": "tester", "run_strategy": {"rule": "PARALLEL"}},
        "workflow": {
            "id": "sample-conditional-wf",
            "params": {"param0": {"type": "LONG", "value": 15}},
            "steps": [
                {"step": {"id": "job.1", "type": "NoOp", "transition": {"successors": {"job.3": "true"}}}},
                {
                    "step": {
                        "id": "job.3",
                        "type": "NoOp",
                        "params": {"param2": {"type": "LONG", "value": 15}},
                        "transition": {"successors": {"job.4": "param2 < 0", "job.7": "!((param2 < 0))"}},
                    }
                },
                {"step": {"id": "job.4", "type": "NoOp"}},
                {
                    "step": {
                        "id": "job.7",
                        "type": "NoOp",
                        "params": {"param5": {"type": "STRING", "expression": "params.get('param0')"}},
                    }
                },
            ],
        },
    }


def test_change_capture_in_the_early_form() -> None:
    """Flat steps with humps in their keys, edges by dependsOn, and the one-step capture."""
    found = written("""
        id: early.pipeline
        steps:
          - id: capture
            type: ICDC
            sourceTable: db.playback
            targetTable: db.playback_icdc
          - id: load
            type: Spark
            script: load.sql
            dependsOn: [capture]
            failureMode: ignore_failure
        """)
    icdc = {
        "source_table": {"type": "STRING", "value": "db.playback"},
        "target_table": {"type": "STRING", "value": "db.playback_icdc"},
    }
    assert found.plain == {
        "workflow": {
            "id": "early.pipeline",
            "steps": [
                {
                    "step": {
                        "id": "capture",
                        "type": "ICDC",
                        "params": {"icdc": {"type": "MAP", "value": icdc}},
                        "transition": {"successors": {"load": "true"}},
                    }
                },
                {
                    "step": {
                        "id": "load",
                        "type": "Spark",
                        "failure_mode": "IGNORE_FAILURE",
                        "params": {
                            "spark": {"type": "MAP", "value": {"script": {"type": "STRING", "value": "load.sql"}}}
                        },
                    }
                },
            ],
        }
    }
