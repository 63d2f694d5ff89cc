package dev.calve.dsl;

/** How the failure of a step affects its workflow. */
public enum FailureMode {
    /** The workflow fails when the other running steps have ended. */
    FAIL_AFTER_RUNNING,
    /** The workflow fails immediately. */
    FAIL_IMMEDIATELY,
    /** The workflow continues. */
    IGNORE_FAILURE
}
