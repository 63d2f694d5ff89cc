package dev.calve.dsl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What is described in Java is the definition that one would write. */
class WorkflowTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** The talk's first workflow. */
    @Test
    void aPipelineIsWrittenAsInTheTalk() throws Exception {
        Workflow workflow = Workflow.of("demo.pipeline")
                .description("A sample")
                .owner("dana")
                .trigger(Trigger.cron("@daily").timezone("Europe/Berlin"))
                .param("my_query", "SELECT 1")
                .jobs(Job.spark("job.1", "${my_query}"));
        assertWritten(
                """
                {"Description": "A sample",
                 "Trigger": [{"cron": "@daily", "timezone": "Europe/Berlin"}],
                 "Workflow": {"id": "demo.pipeline", "owner": "dana", "my_query<string>": "SELECT 1",
                   "jobs": [{"job": {"id": "job.1", "type": "Spark", "spark": {"script": "${my_query}"}}}]}}
                """,
                workflow);
    }

    @Test
    void branchesAndSubworkflowsAreWritten() throws Exception {
        Workflow workflow = Workflow.of("auto.remediation.pipeline")
                .jobs(
                        Subworkflow.of("normal", "demo.pipeline").failureMode(FailureMode.IGNORE_FAILURE),
                        Job.noop("check"),
                        Subworkflow.of("recovery", "example.recovery.wf").sync(true).version("latest").explicitParams(),
                        Job.noop("end"))
                .chain("normal", "check")
                .branch("check", Branch.when("x == 1", "recovery", "end").or("x == 2", "end").otherwise("end"));
        assertWritten(
                """
                {"Workflow": {"id": "auto.remediation.pipeline",
                  "jobs": [
                    {"subworkflow": {"id": "normal", "workflow_id": "demo.pipeline", "failure_mode": "IGNORE_FAILURE"}},
                    {"job": {"id": "check", "type": "NoOp"}},
                    {"subworkflow": {"id": "recovery", "workflow_id": "example.recovery.wf", "sync": true,
                                     "version": "latest", "explicit_params": true}},
                    {"job": {"id": "end", "type": "NoOp"}}],
                  "dag": ["normal -> check",
                    {"check": {"IF x == 1": "recovery -> end", "IF x == 2": "end", "OTHERWISE": "end"}}]}}
                """,
                workflow);
    }

    @Test
    void loopsHoldTheirSteps() throws Exception {
        Workflow workflow = Workflow.of("w")
                .jobs(
                        Foreach.of("days").over("day", List.of(1, 2)).over("table", List.of("a")).concurrency(2)
                                .jobs(Job.shell("one", "echo ${day}"), Job.noop("two"))
                                .sequential(),
                        While.of("again", "n < 3").first("n", 0)
                                .jobs(Job.noop("step").expression("n", ParamType.LONG, "n + 1")));
        assertWritten(
                """
                {"Workflow": {"id": "w", "jobs": [
                  {"foreach": {"id": "days", "concurrency": 2,
                     "loop_params": {"day<long_array>": [1, 2], "table<string_array>": ["a"]},
                     "jobs": [{"job": {"id": "one", "type": "Shell", "shell": {"script": "echo ${day}"}}},
                              {"job": {"id": "two", "type": "NoOp"}}],
                     "dag": "sequential"}},
                  {"while": {"id": "again", "condition": "n < 3", "loop_params": {"n<long>": 0},
                     "jobs": [{"job": {"id": "step", "type": "NoOp", "!n<long>": "n + 1"}}]}}]}}
                """,
                workflow);
    }

    @Test
    void incrementalPipelinesAreWritten() throws Exception {
        Workflow workflow = Workflow.of("w")
                .name("W").tags("nightly").timeout("2 hours").runStrategy(RunStrategy.FIRST_ONLY)
                .trigger(
                        Trigger.incremental("db.events").with("min_files", 10),
                        Trigger.interval("15m").fuzzyMaxDelay("30s"),
                        Trigger.signal("up.done"))
                .expression("day", ParamType.LONG, "20260101 + 1")
                .param("ratio", 0.5).param("dry", false)
                .jobs(
                        Job.ipCapture("capture", "db.events"),
                        Job.spark("load", "SELECT 1").targets("db.t").retryPolicy(Map.of("error_retry_limit", 1)),
                        Job.ipCommit("commit", "capture").name("n").description("d").tags("t").timeout("1 hour"))
                .sequential();
        assertWritten(
                """
                {"Trigger": [{"incremental": {"source_tables": ["db.events"], "min_files": 10}},
                             {"interval": "15m", "fuzzy_max_delay": "30s"}, {"signal": "up.done"}],
                 "Workflow": {"id": "w", "name": "W", "tags": ["nightly"], "timeout": "2 hours",
                   "run_strategy": "FIRST_ONLY", "!day<long>": "20260101 + 1", "ratio<double>": 0.5,
                   "dry<boolean>": false,
                   "jobs": [
                     {"job": {"id": "capture", "type": "IpCapture", "ip_capture": {"source_tables": ["db.events"]}}},
                     {"job": {"id": "load", "type": "Spark", "spark": {"script": "SELECT 1"}, "targets": ["db.t"],
                              "retry_policy": {"error_retry_limit": 1}}},
                     {"job": {"id": "commit", "type": "IpCommit", "ip_commit": {"capture_step": "capture"},
                              "name": "n", "description": "d", "tags": ["t"], "timeout": "1 hour"}}],
                   "dag": "sequential"}}
                """,
                workflow);
    }

    @Test
    void whatHasNoFormIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> Workflow.of("w").param("x", new Object()));
        assertThrows(IllegalArgumentException.class, () -> Workflow.of("w").param("x", List.of()));
        assertThrows(IllegalArgumentException.class, () -> Workflow.of("w").param("x", List.of(1, "a")));
        assertThrows(IllegalArgumentException.class, () -> Branch.when("x"));
        assertThrows(IllegalStateException.class, () -> Workflow.of("w").sequential().chain("a", "b").toJson());
    }

    private static void assertWritten(String expected, Workflow workflow) throws Exception {
        JsonNode wanted = JSON.readTree(expected);
        assertEquals(wanted, JSON.readTree(workflow.toJson()));
    }
}
