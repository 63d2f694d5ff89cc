package dev.calve.dsl;

import java.util.List;

/** A loop over lists: its steps run once for every combination of their items. */
public final class Foreach extends Loop<Foreach> {
    private Foreach(String id) {
        super("foreach", id);
    }

    /** Returns a loop. */
    public static Foreach of(String id) {
        return new Foreach(id);
    }

    /** Iterates over a list; the steps inside see the item as a param with that name. */
    public Foreach over(String name, List<?> items) {
        Params.put(loopParams, name, items);
        return this;
    }

    /** Iterates over the list that an expression returns. */
    public Foreach over(String name, ParamType type, String expression) {
        Params.putExpression(loopParams, name, type, expression);
        return this;
    }

    /** Limits how many iterations run at once. */
    public Foreach concurrency(int concurrency) {
        return with("concurrency", concurrency);
    }

    @Override
    Foreach self() {
        return this;
    }
}
