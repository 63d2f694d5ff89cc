package dev.calve.dsl;

import java.util.LinkedHashMap;
import java.util.Map;

/** Where a step leads to, and under which conditions. */
public final class Branch {
    private final Map<String, Object> ways = new LinkedHashMap<>();

    private Branch() {}

    /** Returns a branch that leads to a chain of steps if a condition holds. */
    public static Branch when(String condition, String... steps) {
        return new Branch().or(condition, steps);
    }

    /** Leads to a chain of steps if another condition holds. */
    public Branch or(String condition, String... steps) {
        ways.put("IF " + condition, chain(steps));
        return this;
    }

    /** Leads to a chain of steps if no condition holds. */
    public Branch otherwise(String... steps) {
        ways.put("OTHERWISE", chain(steps));
        return this;
    }

    static String chain(String... steps) {
        if (steps.length == 0) {
            throw new IllegalArgumentException("A branch leads to at least one step.");
        }
        return String.join(" -> ", steps);
    }

    Map<String, Object> ways() {
        return ways;
    }
}
