package dev.calve.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.calve.dsl.Branch;
import dev.calve.dsl.Foreach;
import dev.calve.dsl.Job;
import dev.calve.dsl.ParamType;
import dev.calve.dsl.Subworkflow;
import dev.calve.dsl.Trigger;
import dev.calve.dsl.While;
import dev.calve.dsl.Workflow;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** The client against a real server, which CALVE_URL names; its worker must run. */
@EnabledIfEnvironmentVariable(named = "CALVE_URL", matches = "http.+")
class ServerTest {
    private static final Duration LONG = Duration.ofMinutes(2);

    private final CalveClient client = new CalveClient(System.getenv("CALVE_URL"), System.getenv("CALVE_TOKEN"));

    @Test
    void whatIsDescribedInJavaRuns() {
        client.push(Workflow.of("java.inner").param("x", "?").jobs(Job.noop("only")));
        client.push(Workflow.of("java.outer")
                .trigger(Trigger.cron("@yearly"))
                .param("days", 2)
                .expression("twice", ParamType.LONG, "days * 2")
                .jobs(
                        Foreach.of("loop").over("day", List.of(1, 2, 3)).concurrency(2).jobs(Job.noop("inside")),
                        While.of("again", "n < 2").first("n", 0)
                                .jobs(Job.noop("step").expression("n", ParamType.LONG, "n + 1")),
                        Subworkflow.of("sub", "java.inner").param("x", "${days}"),
                        Job.noop("left"),
                        Job.noop("right"))
                .chain("loop", "again", "sub")
                .branch("sub", Branch.when("twice == 10", "left").otherwise("right")));
        Instance started = client.start("java.outer", Map.of("days", 5));
        Instance ended = client.await(started, LONG);
        assertEquals("SUCCEEDED", ended.status(), () -> ended.document().toPrettyString());
        assertEquals("SUCCEEDED", stepStatus(ended, "left"));
        assertEquals("UNSATISFIED", stepStatus(ended, "right"));
    }

    @Test
    void theSameRequestIsTheSameInstance() {
        client.pushYaml("Workflow: {id: java.once, jobs: [{job: {id: a, type: NoOp}}]}");
        Instance first = client.start("java.once", Map.of(), "request-1");
        Instance second = client.start("java.once", Map.of(), "request-1");
        assertEquals(first.instanceId(), second.instanceId());
        assertEquals("DUPLICATED", second.status());
        assertTrue(client.await(first, LONG).hasSucceeded());
        assertEquals(
                "java.once",
                client.workflow("java.once").path("metadata").path("workflow_id").asText());
    }

    @Test
    void mistakesAreTold() {
        CalveException missing = assertThrows(CalveException.class, () -> client.start("java.nowhere"));
        assertEquals("workflow_missing", missing.code());
        CalveException wrong = assertThrows(
                CalveException.class,
                () -> client.push(Workflow.of("java.wrong").jobs(Job.noop("a")).chain("a", "b")));
        assertEquals("definition_invalid", wrong.code());
    }

    private static String stepStatus(Instance instance, String step) {
        for (var one : instance.document().path("steps")) {
            if (one.path("step_id").asText().equals(step)) {
                return one.path("status").asText();
            }
        }
        throw new AssertionError("no step " + step);
    }
}
