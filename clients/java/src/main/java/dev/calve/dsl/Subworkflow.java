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

    /** Sets the version to run: {@code active}, {@code latest}, {@code default}, or a number. */
    public Subworkflow version(String version) {
        return with("version", version);
    }

    /** Sets whether the step waits for the end. Default: true. */
    public Subworkflow sync(boolean sync) {
        return with("sync", sync);
    }

    /** Passes only the params of the step to the workflow, not all params of this workflow. */
    public Subworkflow explicitParams() {
        return with("explicit_params", true);
    }

    @Override
    Subworkflow self() {
        return this;
    }
}
