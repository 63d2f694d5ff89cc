package dev.calve.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Set;

/**
 * An instance of a workflow, as the server returned it.
 *
 * @param workflowId the id of the workflow
 * @param instanceId its number
 * @param runId the number of its run; each restart creates one
 * @param status CREATED, IN_PROGRESS, SUCCEEDED …; after a start, its result
 * @param document the whole document
 */
public record Instance(String workflowId, long instanceId, long runId, String status, JsonNode document) {
    private static final Set<String> OVER = Set.of("SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT");

    static Instance of(JsonNode document) {
        return new Instance(
                document.path("workflow_id").asText(),
                document.path("workflow_instance_id").asLong(),
                document.path("workflow_run_id").asLong(),
                document.path("status").asText(),
                document);
    }

    /** Tells whether it has ended. */
    public boolean isOver() {
        return OVER.contains(status);
    }

    /** Tells whether it succeeded. */
    public boolean hasSucceeded() {
        return "SUCCEEDED".equals(status);
    }
}
