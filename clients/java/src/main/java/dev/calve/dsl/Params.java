package dev.calve.dsl;

import java.util.List;
import java.util.Map;

/** Params as a definition contains them: the key has name, type and mode, so that no name is mistaken for a keyword. */
final class Params {
    private Params() {}

    /** Adds a value with its name and type. */
    static void put(Map<String, Object> fields, String name, Object value) {
        fields.put(name + type(name, value), value);
    }

    /** Adds an expression, which is evaluated when the param is needed. */
    static void putExpression(Map<String, Object> fields, String name, ParamType type, String expression) {
        fields.put("!" + name + "<" + type.word() + ">", expression);
    }

    private static String type(String name, Object value) {
        if (value instanceof String) {
            return "<string>";
        }
        if (value instanceof Integer || value instanceof Long) {
            return "<long>";
        }
        if (value instanceof Double || value instanceof Float) {
            return "<double>";
        }
        if (value instanceof Boolean) {
            return "<boolean>";
        }
        if (value instanceof List<?> items && !items.isEmpty()) {
            return arrayType(name, items);
        }
        throw new IllegalArgumentException(
                "The param " + name + " is " + value + "; it must be a text, a number, a boolean or a list of these.");
    }

    private static String arrayType(String name, List<?> items) {
        String first = type(name, items.get(0));
        for (Object item : items) {
            if (item instanceof List<?> || !type(name, item).equals(first)) {
                throw new IllegalArgumentException("The items of the param " + name + " have different types.");
            }
        }
        return first.replace(">", "_array>");
    }
}
