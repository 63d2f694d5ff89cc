package dev.calve.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Set;

/**
 * An instance of a workflow, as the server told of it.
 *
 * @param workflowId which workflow
 * @param instanceId its number
 * @param runId the number of its run; a restart makes another one
 * @param status CREATED, IN_PROGRESS, SUCCEEDED …; of a start, what became of it
 * @param document everything that was told
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

    /** Tells whether nothing more happens with it. */
    public boolean isOver() {
        return OVER.contains(status);
    }

    /** Tells whether all went well. */
    public boolean hasSucceeded() {
        return "SUCCEEDED".equals(status);
    }
}
