package dev.calve.client;

/** The server refused a request, or did not respond. */
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

    /** Returns the error code, such as {@code workflow_missing}; the codes are the same as in the REST API. */
    public String code() {
        return code;
    }

    /** Returns what to do; may be empty. */
    public String remedy() {
        return remedy;
    }

    /** Returns the HTTP status; 0 if there was no response. */
    public int status() {
        return status;
    }
}
