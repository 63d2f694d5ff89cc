package dev.calve.dsl;

/** A step that runs another workflow. */
public final class Subworkflow extends Step<Subworkflow> {
    private Subworkflow(String id, String workflowId) {
        super("subworkflow", id);
        with("workflow_id", workflowId);
    }

    /** Returns a step that runs a workflow. */
    public static Subworkflow of(String id, String workflowId) {
        return new Subworkflow(id, workflowId);
    }

    /** Runs a version: {@code active}, {@code latest}, {@code default}, or a number. */
    public Subworkflow version(String version) {
        return with("version", version);
    }

    /** Says whether the step waits for the end; it does unless told. */
    public Subworkflow sync(boolean sync) {
        return with("sync", sync);
    }

    /** Passes on only the params of the step, not all of the workflow. */
    public Subworkflow explicitParams() {
        return with("explicit_params", true);
    }

    @Override
    Subworkflow self() {
        return this;
    }
}
