package dev.calve.dsl;

/** What the failure of a step means for its workflow. */
public enum FailureMode {
    /** The workflow fails once the other steps that run have ended. */
    FAIL_AFTER_RUNNING,
    /** The workflow fails at once. */
    FAIL_IMMEDIATELY,
    /** The workflow goes on. */
    IGNORE_FAILURE
}
