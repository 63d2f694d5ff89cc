package dev.calve.dsl;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A workflow.
 *
 * <pre>{@code
 * Workflow workflow = Workflow.of("demo.pipeline")
 *         .trigger(Trigger.cron("@daily"))
 *         .param("target", "db.daily")
 *         .jobs(Job.spark("load", "INSERT INTO ${target} SELECT * FROM db.events"), Job.noop("report"))
 *         .sequential();
 * }</pre>
 */
public final class Workflow {
    private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

    private final Map<String, Object> fields = new LinkedHashMap<>();
    private final List<Trigger> triggers = new ArrayList<>();
    private final Graph graph = new Graph();
    private final String id;
    private String description;

    private Workflow(String id) {
        this.id = Objects.requireNonNull(id, "id");
        fields.put("id", id);
    }

    /** Returns a workflow without steps. */
    public static Workflow of(String id) {
        return new Workflow(id);
    }

    /** Returns the id. */
    public String id() {
        return id;
    }

    /** Sets the title of the workflow, for people. */
    public Workflow name(String name) {
        return with("name", name);
    }

    /** Sets the description of the workflow, in Markdown. */
    public Workflow description(String text) {
        description = text;
        return this;
    }

    /** Sets the owner of the workflow. */
    public Workflow owner(String owner) {
        return with("owner", owner);
    }

    /** Adds tags to the workflow. */
    public Workflow tags(String... tags) {
        return with("tags", List.of(tags));
    }

    /** Limits how long a run may take, such as {@code "2 hours"}. */
    public Workflow timeout(String timeout) {
        return with("timeout", timeout);
    }

    /** Sets what happens when the workflow is started while it runs. */
    public Workflow runStrategy(RunStrategy strategy) {
        return with("run_strategy", strategy.name());
    }

    /** Sets the run strategy PARALLEL, with a maximum number of concurrent instances. */
    public Workflow parallel(int instances) {
        return with("run_strategy", instances);
    }

    /** Adds triggers. */
    public Workflow trigger(Trigger... more) {
        triggers.addAll(List.of(more));
        return this;
    }

    /** Adds a param, which a start may override. */
    public Workflow param(String name, Object value) {
        Params.put(fields, name, value);
        return this;
    }

    /** Adds a param whose value is an expression. */
    public Workflow expression(String name, ParamType type, String expression) {
        Params.putExpression(fields, name, type, expression);
        return this;
    }

    /** Adds steps. */
    public Workflow jobs(Step<?>... steps) {
        graph.add(List.of(steps));
        return this;
    }

    /** Runs the steps one after the other; without any order, all steps run in parallel. */
    public Workflow sequential() {
        graph.sequential();
        return this;
    }

    /** Adds edges between consecutive steps. */
    public Workflow chain(String... steps) {
        graph.chain(steps);
        return this;
    }

    /** Adds conditional edges from a step. */
    public Workflow branch(String step, Branch branch) {
        graph.branch(step, branch);
        return this;
    }

    /** Returns the definition as JSON, as a server accepts it. */
    public String toJson() {
        Map<String, Object> workflow = new LinkedHashMap<>(fields);
        graph.writeTo(workflow);
        Map<String, Object> document = new LinkedHashMap<>();
        if (description != null) {
            document.put("Description", description);
        }
        if (!triggers.isEmpty()) {
            document.put("Trigger", triggers.stream().map(Trigger::fields).toList());
        }
        document.put("Workflow", workflow);
        try {
            return JSON.writeValueAsString(document);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("A value in " + id + " cannot be written as JSON.", error);
        }
    }

    private Workflow with(String field, Object value) {
        fields.put(field, Objects.requireNonNull(value, field));
        return this;
    }
}
