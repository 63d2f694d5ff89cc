package dev.calve.dsl;

/** A loop whose steps run again while its condition holds. */
public final class While extends Loop<While> {
    private While(String id, String condition) {
        super("while", id);
        with("condition", condition);
    }

    /** Returns a loop. */
    public static While of(String id, String condition) {
        return new While(id, condition);
    }

    /** Gives a loop param its first value; a param of that name of a step inside gives the next. */
    public While first(String name, Object value) {
        Params.put(loopParams, name, value);
        return this;
    }

    @Override
    While self() {
        return this;
    }
}
