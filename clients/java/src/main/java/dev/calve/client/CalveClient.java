package dev.calve.client;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.calve.dsl.Workflow;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/**
 * A client of a calve server; it is thread-safe.
 *
 * <pre>{@code
 * CalveClient client = new CalveClient("http://127.0.0.1:8765");
 * client.push(workflow);
 * Instance started = client.start("demo.pipeline", Map.of("my_query", "SELECT 1"));
 * Instance ended = client.await(started, Duration.ofMinutes(10));
 * }</pre>
 *
 * <p>Reads are repeated if there is no response, and so are starts, with the same request id, so that nothing is
 * started twice. If the server refuses a request, the client throws {@link CalveException}.
 */
public final class CalveClient {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration FIRST_LOOK = Duration.ofMillis(100);
    private static final Duration LAST_LOOK = Duration.ofSeconds(2);

    private final Server server;

    /** Creates a client of a server that requires no authentication. */
    public CalveClient(String url) {
        this(url, null);
    }

    /** Creates a client that authenticates with an API token. */
    public CalveClient(String url, String token) {
        server = new Server(url, token);
    }

    /** Pushes a workflow as its next version. */
    public JsonNode push(Workflow workflow) {
        return pushJson(workflow.toJson());
    }

    /** Pushes a definition in JSON as the next version of its workflow. */
    public JsonNode pushJson(String definition) {
        return server.ask("POST", Server.path("workflows"), definition, "application/json", false);
    }

    /** Pushes a definition in YAML as the next version of its workflow. */
    public JsonNode pushYaml(String definition) {
        return server.ask("POST", Server.path("workflows", "yaml"), definition, "application/x-yaml", false);
    }

    /** Returns the active version of a workflow. */
    public JsonNode workflow(String workflowId) {
        return server.get(Server.path("workflows", workflowId, "versions", "active"));
    }

    /** Deletes a workflow with its versions, instances and logs. */
    public void delete(String workflowId) {
        server.ask("DELETE", Server.path("workflows", workflowId), null, null, false);
    }

    /** Starts the active version of a workflow. */
    public Instance start(String workflowId) {
        return start(workflowId, Map.of());
    }

    /** Starts the active version of a workflow with params. */
    public Instance start(String workflowId, Map<String, ?> params) {
        return start(workflowId, params, UUID.randomUUID().toString());
    }

    /** Starts a workflow with a given request id; repeating it returns the same instance. */
    public Instance start(String workflowId, Map<String, ?> params, String requestId) {
        Map<String, Object> request = new LinkedHashMap<>();
        request.put("initiator", Map.of("type", "MANUAL"));
        request.put("request_id", requestId);
        request.put("run_params", params);
        String body = JSON.valueToTree(request).toString();
        String place = Server.path("workflows", workflowId, "versions", "active", "actions", "start");
        return Instance.of(server.ask("POST", place, body, "application/json", true));
    }

    /** Returns the current state of an instance. */
    public Instance instance(String workflowId, long instanceId) {
        return Instance.of(server.get(Server.path("workflows", workflowId, "instances", instanceId)));
    }

    /** Stops an instance: it ends as STOPPED. */
    public JsonNode stop(String workflowId, long instanceId) {
        return act("stop", workflowId, instanceId);
    }

    /** Kills an instance: it ends as FAILED. */
    public JsonNode kill(String workflowId, long instanceId) {
        return act("kill", workflowId, instanceId);
    }

    /** Waits until an instance has ended or the time limit has passed, and returns it. */
    public Instance await(Instance started, Duration timeout) {
        long end = System.nanoTime() + timeout.toNanos();
        Duration pause = FIRST_LOOK;
        while (true) {
            Instance seen = instance(started.workflowId(), started.instanceId());
            long left = end - System.nanoTime();
            if (seen.isOver() || left <= 0) {
                return seen;
            }
            Server.sleep(Duration.ofNanos(Math.min(left, pause.toNanos())));
            pause = pause.multipliedBy(2).compareTo(LAST_LOOK) < 0 ? pause.multipliedBy(2) : LAST_LOOK;
        }
    }

    private JsonNode act(String action, String workflowId, long instanceId) {
        String place = Server.path("workflows", workflowId, "instances", instanceId, "actions", action);
        return server.ask("PUT", place, null, null, false);
    }
}
