package dev.calve.dsl;

import java.util.Locale;

/** The type of a param whose value is an expression. */
public enum ParamType {
    STRING,
    LONG,
    DOUBLE,
    BOOLEAN,
    STRING_ARRAY,
    LONG_ARRAY,
    DOUBLE_ARRAY,
    BOOLEAN_ARRAY,
    STRING_MAP,
    MAP;

    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
