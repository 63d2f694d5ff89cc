"""From a text to a definition: every check, all problems at once, and the dry run of the params."""

import json
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from tests.talk_workflows import FIRST, SECOND, THIRD

from calve.definition import Definition, Loaded, ScriptFolder, Severity, installed, load
from calve.definition.dry_run.facts import DryRunFacts
from calve.definition.model import StringParam
from calve.definition.problems import MOST
from calve.definition.step_types import StepTypes
from calve.definition.templates import JobTemplate, JobTemplates, TemplateDefinition
from calve.definition.vocabulary import Vocabulary
from calve.errors import DefinitionInvalid


def loaded(text: str) -> Loaded:
    """Return what a text gives."""
    return load(dedent(text), name="w.yaml", vocabulary=installed())


def workflow(jobs: str, more: str = "") -> Loaded:
    """Return what a workflow with these jobs and these other keys gives."""
    text = (
        f"Workflow:\n  id: w\n{indent(dedent(more).strip(), '  ')}\n  jobs:\n{indent(dedent(jobs).strip(), '    ')}\n"
    )
    return load(text, name="w.yaml", vocabulary=installed())


def errors(result: Loaded) -> list[tuple[str, int]]:
    """Return the codes and lines of the errors."""
    return [(problem.code, problem.line) for problem in result.problems if problem.severity is Severity.ERROR]


def warnings(result: Loaded) -> list[str]:
    """Return the codes of the warnings."""
    return [problem.code for problem in result.problems if problem.severity is Severity.WARNING]


NOOP = "- job: {id: a, type: NoOp}"

MISSION: list[tuple[str, str, list[str]]] = [
    (
        "the first workflow of the talk",
        FIRST,
        ["param_not_given"] * 3,
    ),
    (
        "the one that mends itself",
        SECOND,
        [],
    ),
    (
        "the incremental one",
        THIRD,
        [],
    ),
    (
        "the early form",
        """
        id: early
        steps:
          - {id: capture, type: ICDC, sourceTable: db.events, targetTable: icdc.events}
          - {id: merge, type: Spark, dependsOn: [capture], spark: {script: SELECT 1}}
        """,
        [],
    ),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in MISSION], ids=[case[0] for case in MISSION])
def test_the_workflows_that_must_run_as_written_load(text: str, expected: list[str]) -> None:
    """What only the start can give is warned of, and nothing else."""
    result = loaded(text)
    assert isinstance(result.required(), Definition)
    assert warnings(result) == expected


def test_every_mistake_of_a_document_is_reported_at_once() -> None:
    """Of the form, the models, the step types, the graph, the names and the expressions."""
    result = loaded("""\
        Workflow:
          id: w w
          maestro: 1
          bad_expression_here: 1
          '!broken': 1 +
          jobs:
            - job: {id: a, type: Sprak}
            - job:
                id: a
                type: Spark
                failure_mod: IGNORE_FAILURE
                spark: {scirpt: x}
            - job: {id: b, type: NoOp, transition: [nowhere]}
        """)
    found = {code for code, _ in errors(result)}
    assert {
        "name_malformed",
        "reserved_param",
        "expression_invalid",
        "unknown_step_type",
        "duplicate_step",
        "misspelt_key",
        "unknown_field",
    } <= found
    assert len(found) >= 8
    assert result.definition is None
    with pytest.raises(DefinitionInvalid) as error:
        result.required()
    assert len(error.value.context["problems"]) == len(result.problems)


def test_a_text_that_is_not_a_definition_reports_it() -> None:
    """And so does one that is no YAML at all."""
    assert errors(loaded("[1, 2]"))
    assert errors(loaded("a: b: c"))
    with pytest.raises(DefinitionInvalid):
        loaded("").required()


def test_a_document_of_nothing_but_mistakes_is_left_early() -> None:
    """It has as many problems as anybody would read."""
    jobs = "\n".join(f"- job: {{id: a{number}, type: Nope}}" for number in range(MOST + 50))
    assert len(errors(workflow(jobs))) == MOST


def test_many_warnings_are_no_error() -> None:
    """Those beyond the most are counted."""
    jobs = "\n".join(f"- job: {{id: a{number}, type: NoOp, x: $nothing}}" for number in range(MOST + 50))
    result = workflow(jobs)
    assert result.definition is not None
    assert result.problems[-1].message == "there are 50 more warnings"


LIMITS: list[tuple[str, str, str]] = [
    ("too_many_steps", "\n".join(f"- job: {{id: a{number}, type: NoOp}}" for number in range(301)), ""),
    ("too_large", NOOP, f"one: {'x' * 140_000}\ntwo: {'y' * 140_000}"),
    ("reserved_param", NOOP, "Util: 1"),
    ("name_malformed", NOOP, "a__b: 1"),
    ("name_malformed", NOOP, "'1x': 1"),
    ("missing_field", "- foreach: {id: f, jobs: [{job: {id: a, type: NoOp}}]}", ""),
    ("missing_field", "- while: {id: f, condition: 'true', jobs: [{job: {id: a, type: NoOp}}]}", ""),
    ("loop_param_type", "- foreach: {id: f, loop_params: {i: 1}, jobs: [{job: {id: a, type: NoOp}}]}", ""),
    (
        "loop_param_type",
        "- while: {id: f, loop_params: {i: [1]}, condition: 'true', jobs: [{job: {id: a, type: NoOp}}]}",
        "",
    ),
    (
        "duplicate_loop_param",
        """
        - foreach:
            id: f
            loop_params: {i: [1]}
            jobs:
              - foreach: {id: g, loop_params: {i: [1]}, jobs: [{job: {id: a, type: NoOp}}]}
        """,
        "",
    ),
    ("signal_param_type", "- job: {id: a, type: NoOp, signal_outputs: [{name: s, params: {p: true}}]}", ""),
    ("param_error", "- job: {id: a, type: NoOp, timeout: 0}", ""),
    ("param_error", NOOP, "timeout: 121 days"),
    ("param_error", "- job: {id: a, type: NoOp, retry_policy: {error_retry_limit: 100}}", ""),
    ("definition_invalid", NOOP, "time_triggers: [{type: CRON, cron: '* * * * *'}]"),
    ("definition_invalid", NOOP, "time_triggers: [{type: CRON, cron: '0 5 * * *', timezone: Mars/Base}]"),
    ("definition_invalid", NOOP, "time_triggers: [{type: PREDEFINED, expression: '@dayly'}]"),
    ("definition_invalid", NOOP, "time_triggers: [{type: INTERVAL, interval: 60}]"),
    ("param_error", NOOP, "time_triggers: [{type: CRON, cron: '0 5 * * *', fuzzy_max_delay: 0}]"),
    ("param_error", NOOP, "time_triggers: [{type: CRON, cron: '0 5 * * *', fuzzy_max_delay: soon}]"),
    ("param_error", NOOP, "incremental_triggers: [{source_tables: [a.b], max_delay: soon}]"),
    ("param_error", NOOP, "incremental_triggers: [{source_tables: [a.b], debounce: '${x}'}]"),
    ("signal_name", NOOP, "signal_triggers: [{definitions: {' x': {}}}]"),
    ("signal_name", NOOP, "signal_triggers: [{definitions: {x: {match_params: {'': {value: 1}}}}}]"),
    ("signal_name", "- job: {id: a, type: NoOp, signal_dependencies: [{name: 'x '}]}", ""),
    ("signal_name", f"- job: {{id: a, type: NoOp, signal_outputs: [{{name: {'x' * 256}}}]}}", ""),
    ("signal_name", f"- job: {{id: a, type: NoOp, signal_outputs: [{{name: x, params: {{{'p' * 256}: 1}}}}]}}", ""),
]


@pytest.mark.parametrize(
    ("code", "jobs", "more"), LIMITS, ids=[f"{case[0]}-{index}" for index, case in enumerate(LIMITS)]
)
def test_each_limit_is_enforced(code: str, jobs: str, more: str) -> None:
    """Each by an error of its own."""
    assert [found for found, _ in errors(workflow(jobs, more))] == [code]


def test_loops_are_nested_ten_deep_at_most() -> None:
    """As Maestro's."""
    inner: dict[str, Any] = {"job": {"id": "a", "type": "NoOp"}}
    for level in range(11):
        inner = {"foreach": {"id": f"f{level}", "loop_params": {f"i{level}": [1]}, "jobs": [inner]}}
    result = loaded(json.dumps({"Workflow": {"id": "w", "jobs": [inner]}}))
    assert ("too_deep", 1) in errors(result)


@pytest.mark.parametrize("name", ["w.yaml", "w.json"])
def test_what_has_too_many_values_is_not_read_to_its_end(name: str) -> None:
    """It would be too large as JSON; the place is told where that was certain."""
    jobs = [{"job": {"id": f"a{n}", "type": "NoOp", **{f"p{m}": f"value {m}" for m in range(100)}}} for n in range(299)]
    text = json.dumps({"Workflow": {"id": "w", "jobs": jobs}}, indent=1)
    result = load(text, name=name, vocabulary=installed())
    assert [problem.code for problem in result.problems] == ["too_large"]
    assert 10_000 < result.problems[0].line < 15_000
    assert result.definition is None


def test_many_tags_are_compared_once() -> None:
    """Two thousand of them are no reason to wait; one that comes twice is found."""
    names = ", ".join(f"t{n}" for n in range(2_000))
    assert workflow(NOOP, f"tags: [{names}]").definition is not None
    assert "t7 twice" in str(workflow(NOOP, f"tags: [{names}, t7]").problems)


def test_params_are_not_too_long() -> None:
    """Counted as JSON."""
    long = [letter * 200_000 for letter in "abcd"]
    result = workflow(NOOP, f"long: [{', '.join(long)}]")
    assert {problem.path for problem in result.problems} == {"", "Workflow"}


def test_a_span_of_a_trigger_is_reported_with_its_field_and_line() -> None:
    """Before anybody waits for a trigger that never fires."""
    result = workflow(
        NOOP,
        """
        incremental_triggers:
          - source_tables: [a.b]
            debounce: a while
        """,
    )
    (problem,) = result.problems
    assert problem.message.startswith("debounce: ")
    assert problem.path.endswith("debounce")
    assert problem.hint.startswith("write a number of seconds")


def test_names_of_signals_may_come_from_params() -> None:
    """Then only a run can tell whether they are names; spans that make sense are taken."""
    jobs = "- job: {id: a, type: NoOp, signal_dependencies: [{name: 'x ${p}'}], signal_outputs: [{name: ok}]}"
    more = "p: 1\nincremental_triggers: [{source_tables: [a.b], max_delay: 15 minutes, debounce: 30}]"
    assert not errors(workflow(jobs, more))


def test_an_interval_may_be_a_quarter_of_an_hour() -> None:
    """Which is what micro batches want."""
    assert not errors(workflow(NOOP, "time_triggers: [{type: INTERVAL, interval: 15min}]"))


def test_a_param_without_value_is_reported_however_deep_it_is() -> None:
    """In JSON it can be left out."""
    result = loaded("""
        {"workflow": {"id": "w",
         "params": {"m": {"type": "MAP", "value": {"x": {"type": "LONG"}}}, "n": {"type": "LONG"}},
         "steps": [{"step": {"id": "a", "type": "NoOp"}}]}}
        """)
    assert [code for code, _ in errors(result)] == ["param_undefined", "param_undefined"]


def test_an_expression_is_checked_wherever_it_stands() -> None:
    """In params, maps, edges, loops, triggers, dependencies and outputs."""
    result = loaded("""
        {"workflow": {"id": "w",
          "params": {"m": {"type": "MAP", "value": {"x": {"type": "LONG", "expression": "1 +"}}}},
          "signal_triggers": [{"definitions": {"s": {}}, "condition": "2 +", "dedup_expr": "3 +",
                               "params": {"p": {"type": "LONG", "expression": "4 +"}}}],
          "steps": [
            {"while": {"id": "l", "condition": "5 +",
                       "params": {"loop_params": {"type": "MAP", "value": {"i": {"type": "LONG", "value": 1}}}},
                       "steps": [{"step": {"id": "a", "type": "NoOp"}}]}},
            {"step": {"id": "b", "type": "NoOp", "transition": {"successors": {"c": "6 +"}},
                      "signal_dependencies": [
                        {"name": "s", "match_params": {"p": {"param": {"type": "LONG", "expression": "7 +"}}}}],
                      "signal_outputs": [{"name": "s", "params": {"p": {"type": "LONG", "expression": "8 +"}}}]}},
            {"step": {"id": "c", "type": "NoOp"}}]}}
        """)
    assert [code for code, _ in errors(result)] == ["expression_invalid"] * 8


def test_a_quirk_of_the_language_is_warned_of() -> None:
    """Where an author would not expect it."""
    assert "octal_like" in warnings(workflow(NOOP, "'!x<long>': '010'"))


def test_a_cycle_of_params_is_an_error_that_names_it() -> None:
    """And each param is told of once."""
    result = workflow(NOOP, "a: ${b}\nb: ${c}\nc: ${a}\nd: ${a}")
    (problem,) = [problem for problem in result.problems if problem.severity is Severity.ERROR]
    assert "a → b → c → a" in problem.message


def test_a_param_that_cannot_be_evaluated_is_an_error_at_its_place() -> None:
    """The others are tried all the same."""
    result = workflow("- job: {id: a, type: NoOp, '!y<long>': \"'text'\"}", "'!x<long>': 1 / 0\nz: 1")
    assert errors(result) == [("expression_failed", 3), ("param_error", 6)]


def test_a_param_may_not_change_what_belongs_to_the_system() -> None:
    """The workflow's own facts and the step's."""
    assert [code for code, _ in errors(workflow(NOOP, "workflow_id: x"))] == ["param_error"]
    assert [code for code, _ in errors(workflow("- job: {id: a, type: NoOp, step_id: x}"))] == ["param_error"]


def test_what_only_a_run_can_tell_is_not_tried() -> None:
    """Outputs, answers of other steps, loop params, signals, attempts and scripts."""
    result = workflow(
        """
        - job: {id: c, type: IpCapture, ip_capture: {source_tables: [db.t]}, transition: [s, l]}
        - job:
            id: s
            type: NoOp
            x: ${c.icdc_table}
            y: $c__rows
            z: ${x}
            q: $S3{a.sql}
            '!d<long>': step_attempt_id + 1
            '!o': params.getFromStep('c', 'icdc_table')
            m: {'!n<long>': "params.getFromStep('c', 'rows')"}
            '!w<long>': other_signal__p
            transition: [k]
        - job: {id: k, type: IpCommit, ip_commit: {capture_step: c}}
        - foreach:
            id: l
            loop_params: {i: [1]}
            jobs:
              - job: {id: in, type: NoOp, '!j<long>': i / 0, '!n<long>': loop_index}
        """
    )
    assert errors(result) == []
    assert warnings(result) == []


def test_an_output_that_a_step_does_not_give_is_an_error() -> None:
    """A step that does not exist is one too."""
    result = workflow(
        """
        - job: {id: c, type: NoOp, given: 1, transition: [s]}
        - job: {id: s, type: NoOp, x: '${c.tabel}', y: '${c.given}', '!z': "params.getFromStep('d', 'x')"}
        """
    )
    assert [code for code, _ in errors(result)] == ["unknown_output", "unknown_step"]
    assert result.problems[-1].hint == "did you mean c?" or "one of" in result.problems[-1].hint


def test_a_name_that_nothing_defines_is_a_warning_with_the_nearest_name() -> None:
    """It may be given at the start."""
    result = workflow("- job: {id: a, type: NoOp, x: $sorce_table}", "source_table: t")
    (problem,) = result.problems
    assert (problem.code, problem.hint) == ("param_not_given", "did you mean source_table?")


def test_dates_of_a_range_count_as_some_day() -> None:
    """As in Maestro, where they are given by whoever starts the workflow."""
    assert not errors(
        workflow(
            NOOP, "FROM_DATE: ''\n'!days<array<long>>': Util.dateIntsBetween(Integer.valueOf(FROM_DATE), 20210103, 1)"
        )
    )


def test_a_timeout_may_refer_to_a_param() -> None:
    """To one that only the start gives, too."""
    assert not errors(
        workflow("- job: {id: a, type: NoOp, timeout: '${t}', retry_policy: {error_retry_limit: '${r}'}}", "t: 2 hours")
    )


def test_a_template_is_expanded_and_its_params_are_tried() -> None:
    """The steps are there as if they had been written."""
    result = workflow(
        """
        - template:
            id: load
            type: incremental
            ip_capture: {source_tables: [db.events]}
            spark: {script: 'INSERT INTO db.t SELECT * FROM ${relation}'}
        """
    )
    assert [step.id.startswith("load") for step in result.required().workflow.all_steps()] == [True] * 3


def test_a_job_template_that_does_not_fit_its_step_is_an_error() -> None:
    """In JSON a step may say both."""
    template = TemplateDefinition(
        job_type="Report", step_type="Shell", version="default", params={"who": StringParam(value="x")}
    )
    metadata = {"owner": "x", "status": "stable", "support": "none"}
    templates = JobTemplates.of([JobTemplate.model_validate({"metadata": metadata, "definition": template})])
    words = Vocabulary(StepTypes(templates=templates), templates)
    steps = '[{"step": {"id": "a", "type": "%s", "sub_type": "Report"}}]'
    text = '{"workflow": {"id": "w", "steps": %s}}'
    assert [problem.code for problem in load(text % (steps % "NoOp"), name="w.json", vocabulary=words).problems] == [
        "definition_invalid"
    ]
    refers = {"y": {"type": "STRING", "value": "$who"}}
    step = {"id": "a", "type": "Shell", "sub_type": "Report", "params": refers}
    shell = json.dumps({"workflow": {"id": "w", "steps": [{"step": step}]}})
    assert load(shell, name="w.json", vocabulary=words).problems == ()


def test_a_step_without_an_id_is_reported_once() -> None:
    """The other checks go on without it."""
    result = loaded(
        '{"workflow": {"id": "w", "steps": [{"step": {"type": "NoOp"}}, {"step": {"id": "a", "type": "NoOp"}}]}}'
    )
    assert [code for code, _ in errors(result)] == ["missing_field"]


def test_what_a_step_can_say_of_itself_is_tried() -> None:
    """And what the instance and the environment say; of other steps, only that they are there."""
    result = workflow(
        """
        - job:
            id: a
            type: NoOp
            '!i': params.getFromStep('step_id')
            '!t': params.getFromStep('step_type_info')
            '!o': params.getFromInstance('workflow_id')
            '!u': params.nextUniqueId()
            '!e': params.getExecutionEnvironment()
            '!w<long>': params.getFromInstance('nothing')
        - subworkflow: {id: b, workflow_id: x, '!k': "params.getFromStep('step_type_info')"}
        - job:
            id: c
            type: NoOp
            '!s': params.getFromSubworkflow('bb', 'x', 'y')
            '!f<array<long>>': params.getFromForeach('ff', 'x', 'y')
        """
    )
    assert [code for code, _ in errors(result)] == ["expression_failed", "unknown_step", "unknown_step"]


def test_a_signal_that_no_trigger_declares_is_an_error() -> None:
    """Of one that is declared, the run will tell."""
    signals = "signal_triggers: [{definitions: {up: {}}}]"
    assert not errors(workflow("- job: {id: a, type: NoOp, '!x<long>': \"params.getFromSignal('up', 'p')\"}", signals))
    assert errors(workflow("- job: {id: a, type: NoOp, '!x<long>': \"params.getFromSignal('down', 'p')\"}", signals))


def test_a_dry_run_has_no_steps_no_signals_and_no_loops() -> None:
    """Whatever asks for them waits for the run."""
    facts = DryRunFacts(workflow(NOOP).required(), None)
    assert facts.own_step is None
    answers = (
        facts.step("a"),
        facts.signal("s"),
        facts.foreach_results("f", "a", "p"),
        facts.subworkflow_param("w", "a", "p"),
    )
    assert answers == (None, None, None, None)


def test_a_job_that_is_not_there_is_crossed_out() -> None:
    """At either end of an edge."""
    result = workflow(NOOP, "dag: ['a -> nowhere', 'nothing -> a']")
    assert [problem.drawing for problem in result.problems] == ["a ──▶ nowhere ✗", "nothing ✗ ──▶ a"]


def test_a_name_that_is_put_together_is_up_to_the_run() -> None:
    """And so is one that nothing here gives; what is known is tried."""
    result = workflow(
        """
        - job:
            id: a
            type: NoOp
            '!x': params['b.' + 'c__d']
            '!y': params.get('later')
            '!z<long>': params['n'] / 0
        """,
        "n: 1",
    )
    assert [problem.message.partition(":")[0] for problem in result.problems] == ["Param [z]"]


def test_a_condition_may_be_a_bare_true() -> None:
    """As JSON has it."""
    result = loaded("""
        {"workflow": {"id": "w", "steps": [
          {"step": {"id": "a", "type": "NoOp", "transition": {"successors": {"b": true}}}},
          {"step": {"id": "b", "type": "NoOp"}}]}}
        """)
    assert result.required().workflow.steps[0].transition.successors == {"b": "true"}


def test_a_version_makes_a_type_the_name_of_a_template() -> None:
    """Which may give what the step itself does not say."""
    (step,) = workflow("- job: {id: a, type: spark, type_version: v1}").required().workflow.steps
    assert step.as_json() == {"id": "a", "type": "Spark", "sub_type": "spark", "sub_type_version": "v1"}


@pytest.mark.parametrize(
    "loop",
    [
        "ranges: {i: {from: 0, to: 1000000}}",
        "ranges: {i: {from: 0, to: 1000}, j: {from: 0, to: 1000}}",
        "loop_params: {'!i<long_array>': 'Util.intsBetween(0, 1000000, 1)'}",
        "loop_params: {'!i<long_array>': 'Util.intsBetween(0, most, 1)'}",
        f"ranges: {{i: {{to: 251}}}}, loop_params: {{j: {[*range(100)]}}}",
    ],
)
def test_a_foreach_of_too_many_iterations_is_refused(loop: str) -> None:
    """As far as they are known before a run: 25,000 are allowed."""
    result = workflow(f"- foreach: {{id: l, {loop}, jobs: [{{job: {{id: a, type: NoOp}}}}]}}", "most: 1000000")
    (problem,) = result.problems
    assert "limit" in problem.message
    assert workflow("- foreach: {id: l, ranges: {i: {to: 25000}}, jobs: [{job: {id: a, type: NoOp}}]}").definition


def test_a_script_that_is_missing_is_an_error_only_for_a_push(tmp_path: Path) -> None:
    """A version contains its scripts."""
    text = "Workflow: {id: demo, jobs: [{job: {id: a, type: Shell, shell: {script: '$S3{a.sh}'}}}]}"
    result = load(text, name="demo.yaml", vocabulary=installed(), scripts=ScriptFolder(tmp_path))
    assert result.required().workflow.id == "demo"
    with pytest.raises(DefinitionInvalid, match=r"there is no file a\.sh"):
        result.to_push().required()
    (tmp_path / "a.sh").write_text("true")
    complete = load(text, name="demo.yaml", vocabulary=installed(), scripts=ScriptFolder(tmp_path))
    assert complete.to_push() is complete
