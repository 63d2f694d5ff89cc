package dev.calve.dsl;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * One step of a workflow: a {@link Job}, a {@link Subworkflow}, a {@link Foreach} or a {@link While}.
 *
 * @param <T> the kind of step itself
 */
public abstract sealed class Step<T extends Step<T>> permits Job, Subworkflow, Loop {
    private final String keyword;
    private final String id;
    private final Map<String, Object> fields = new LinkedHashMap<>();

    Step(String keyword, String id) {
        this.keyword = keyword;
        this.id = Objects.requireNonNull(id, "id");
        fields.put("id", id);
    }

    abstract T self();

    /** Returns the id, which is unique in the workflow. */
    public final String id() {
        return id;
    }

    /** Sets the title of the step, for people. */
    public final T name(String name) {
        return with("name", name);
    }

    /** Sets the description of the step. */
    public final T description(String description) {
        return with("description", description);
    }

    /** Sets how the failure of the step affects the workflow. */
    public final T failureMode(FailureMode mode) {
        return with("failure_mode", mode.name());
    }

    /** Adds tags to the step; the limit of a tag counts all steps that have it. */
    public final T tags(String... tags) {
        return with("tags", List.of(tags));
    }

    /** Limits how long the step may take, such as {@code "2 hours"}. */
    public final T timeout(String timeout) {
        return with("timeout", timeout);
    }

    /** Adds a param; a text may contain {@code ${other}}. */
    public final T param(String name, Object value) {
        Params.put(fields, name, value);
        return self();
    }

    /** Adds a param whose value is an expression. */
    public final T expression(String name, ParamType type, String expression) {
        Params.putExpression(fields, name, type, expression);
        return self();
    }

    final T with(String field, Object value) {
        fields.put(field, Objects.requireNonNull(value, field));
        return self();
    }

    Map<String, Object> fields() {
        return new LinkedHashMap<>(fields);
    }

    final Map<String, Object> described() {
        return Map.of(keyword, fields());
    }
}
