package dev.calve.dsl;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Steps and the edges between them. */
final class Graph {
    private final List<Step<?>> steps = new ArrayList<>();
    private final List<Object> edges = new ArrayList<>();
    private boolean isSequential;

    void add(List<Step<?>> more) {
        steps.addAll(more);
    }

    void sequential() {
        isSequential = true;
    }

    void chain(String... ids) {
        edges.add(Branch.chain(ids));
    }

    void branch(String step, Branch branch) {
        edges.add(Map.of(step, branch.ways()));
    }

    void writeTo(Map<String, Object> fields) {
        if (isSequential && !edges.isEmpty()) {
            throw new IllegalStateException("The steps are sequential: remove the chains and branches.");
        }
        fields.put("jobs", steps.stream().map(Step::described).toList());
        if (isSequential) {
            fields.put("dag", "sequential");
        } else if (!edges.isEmpty()) {
            fields.put("dag", List.copyOf(edges));
        }
    }
}
