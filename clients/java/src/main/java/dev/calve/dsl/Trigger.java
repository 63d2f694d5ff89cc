package dev.calve.dsl;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What starts a workflow: time, a signal, or a change of its source tables. */
public final class Trigger {
    private final Map<String, Object> fields = new LinkedHashMap<>();
    private final Map<String, Object> place;

    private Trigger(String kind, Object value, boolean isNested) {
        fields.put(kind, value);
        place = isNested ? nested(value) : fields;
    }

    /** Returns a trigger that fires on a schedule: {@code "@daily"}, {@code "0 5 * * *"}. */
    public static Trigger cron(String schedule) {
        return new Trigger("cron", schedule, false);
    }

    /** Returns a trigger that fires at a fixed interval, such as {@code "15m"}. */
    public static Trigger interval(String every) {
        return new Trigger("interval", every, false);
    }

    /** Returns a trigger that fires when a signal arrives. */
    public static Trigger signal(String name) {
        return new Trigger("signal", name, false);
    }

    /** Returns a trigger that fires when tables have changes that the workflow has not committed. */
    public static Trigger incremental(String... sourceTables) {
        Map<String, Object> about = new LinkedHashMap<>();
        about.put("source_tables", List.of(sourceTables));
        return new Trigger("incremental", about, true);
    }

    /** Sets the time zone of a schedule. Default: UTC. */
    public Trigger timezone(String timezone) {
        return with("timezone", timezone);
    }

    /** Sets the maximum random delay of a start. */
    public Trigger fuzzyMaxDelay(String delay) {
        return with("fuzzy_max_delay", delay);
    }

    /** Sets a field of an incremental trigger: {@code min_files}, {@code min_bytes}, {@code max_delay}, {@code debounce}. */
    public Trigger with(String field, Object value) {
        place.put(field, value);
        return this;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> nested(Object value) {
        return (Map<String, Object>) value;
    }

    Map<String, Object> fields() {
        return fields;
    }
}
