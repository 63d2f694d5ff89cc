package dev.calve.dsl;

import java.util.LinkedHashMap;
import java.util.Map;

/** The conditional edges from a step. */
public final class Branch {
    private final Map<String, Object> ways = new LinkedHashMap<>();

    private Branch() {}

    /** Returns a branch to a chain of steps, which run if a condition is true. */
    public static Branch when(String condition, String... steps) {
        return new Branch().or(condition, steps);
    }

    /** Adds a chain of steps, which run if another condition is true. */
    public Branch or(String condition, String... steps) {
        ways.put("IF " + condition, chain(steps));
        return this;
    }

    /** Adds a chain of steps, which run if no condition is true. */
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
