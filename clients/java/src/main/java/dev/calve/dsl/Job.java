package dev.calve.dsl;

import java.util.List;
import java.util.Map;

/** A step that does work: Spark, SQL, Shell, Python, IpCapture and so on. */
public final class Job extends Step<Job> {
    private Job(String id, String type) {
        super("job", id);
        with("type", type);
    }

    /** Returns a job of a step type or of a job template. */
    public static Job of(String id, String type) {
        return new Job(id, type);
    }

    /** Returns a job that does nothing and succeeds. */
    public static Job noop(String id) {
        return of(id, "NoOp");
    }

    /** Returns a job that runs SQL on Spark. */
    public static Job spark(String id, String script) {
        return of(id, "Spark").config("spark", Map.of("script", script));
    }

    /** Returns a job that runs a script in a shell. */
    public static Job shell(String id, String script) {
        return of(id, "Shell").config("shell", Map.of("script", script));
    }

    /** Returns a step that captures what changed in tables since its last checkpoint. */
    public static Job ipCapture(String id, String... sourceTables) {
        return of(id, "IpCapture").config("ip_capture", Map.of("source_tables", List.of(sourceTables)));
    }

    /** Returns a step that commits a capture, which moves the checkpoint. */
    public static Job ipCommit(String id, String captureStep) {
        return of(id, "IpCommit").config("ip_commit", Map.of("capture_step", captureStep));
    }

    /** Sets the config map of the job, which is named after its type, such as {@code spark}. */
    public Job config(String key, Map<String, ?> values) {
        return with(key, values);
    }

    /** Sets the tables that the job writes exactly once. */
    public Job targets(String... tables) {
        return with("targets", List.of(tables));
    }

    /** Sets how often the job is retried. */
    public Job retryPolicy(Map<String, ?> policy) {
        return with("retry_policy", policy);
    }

    @Override
    Job self() {
        return this;
    }
}
