package dev.calve.client;

/** The server refused something, or did not answer. */
public final class CalveException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String code;
    private final String remedy;
    private final int status;

    CalveException(int status, String code, String message, String remedy) {
        super(message);
        this.status = status;
        this.code = code;
        this.remedy = remedy;
    }

    CalveException(String code, String message, Throwable cause) {
        super(message, cause);
        this.status = 0;
        this.code = code;
        this.remedy = "";
    }

    /** Returns which error it is, such as {@code workflow_missing}; the same codes as everywhere in calve. */
    public String code() {
        return code;
    }

    /** Returns what to do about it; may be empty. */
    public String remedy() {
        return remedy;
    }

    /** Returns the HTTP status; 0 if no answer came. */
    public int status() {
        return status;
    }
}
