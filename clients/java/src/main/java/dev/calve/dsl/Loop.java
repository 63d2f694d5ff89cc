package dev.calve.dsl;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A step that runs the steps inside it repeatedly.
 *
 * @param <T> the kind of loop itself
 */
public abstract sealed class Loop<T extends Loop<T>> extends Step<T> permits Foreach, While {
    final Map<String, Object> loopParams = new LinkedHashMap<>();
    private final Graph inside = new Graph();

    Loop(String keyword, String id) {
        super(keyword, id);
    }

    /** Adds steps to the loop. */
    public final T jobs(Step<?>... steps) {
        inside.add(List.of(steps));
        return self();
    }

    /** Runs the steps inside one after the other. */
    public final T sequential() {
        inside.sequential();
        return self();
    }

    /** Adds edges between consecutive steps inside. */
    public final T chain(String... steps) {
        inside.chain(steps);
        return self();
    }

    /** Adds conditional edges from a step inside. */
    public final T branch(String step, Branch branch) {
        inside.branch(step, branch);
        return self();
    }

    @Override
    final Map<String, Object> fields() {
        Map<String, Object> fields = super.fields();
        fields.put("loop_params", loopParams);
        inside.writeTo(fields);
        return fields;
    }
}
