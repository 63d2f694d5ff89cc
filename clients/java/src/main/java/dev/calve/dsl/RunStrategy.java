package dev.calve.dsl;

/** What happens when a workflow is started while it runs. */
public enum RunStrategy {
    SEQUENTIAL,
    STRICT_SEQUENTIAL,
    FIRST_ONLY,
    LAST_ONLY,
    PARALLEL,
    SERIAL_LATEST_ONLY
}
