package dev.calve.dsl;

/** A loop that repeats its steps while its condition is true. */
public final class While extends Loop<While> {
    private While(String id, String condition) {
        super("while", id);
        with("condition", condition);
    }

    /** Returns a loop. */
    public static While of(String id, String condition) {
        return new While(id, condition);
    }

    /** Sets the initial value of a loop param; a param with that name of a step inside sets the next value. */
    public While first(String name, Object value) {
        Params.put(loopParams, name, value);
        return this;
    }

    @Override
    While self() {
        return this;
    }
}
