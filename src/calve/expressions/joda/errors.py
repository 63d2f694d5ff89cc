"""What Joda-Time throws, as one error that knows Java's name for it. Pure."""


class JodaError(Exception):
    """A date-time, zone or pattern makes no sense; ``kind`` is the simple name of Java's exception."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


class InstantMissing(JodaError):
    """The local time falls into a gap of its zone.

    Setting a field raises it as an IllegalFieldValueException; Joda-Time tells such ones from values out of range by
    their cause, we by their class.
    """


def out_of_range(field: str, value: int, lowest: int, highest: int, explanation: str = "") -> JodaError:
    """Return the error of a field's value that no date-time has."""
    message = f"Value {value} for {field} must be in the range [{lowest},{highest}]{explanation}"
    return JodaError("IllegalFieldValueException", message)


def invalid_format(text: str, position: int) -> JodaError:
    """Return the error of a text that stops making sense at ``position``, with a sample of what is there."""
    sample = text if len(text) <= position + 35 else f"{text[: position + 32]}..."
    if position <= 0:
        message = f'Invalid format: "{sample}"'
    elif position >= len(text):
        message = f'Invalid format: "{sample}" is too short'
    else:
        message = f'Invalid format: "{sample}" is malformed at "{sample[position:]}"'
    return JodaError("IllegalArgumentException", message)
