"""Errors of checks as people read them: in one line, whichever library raised them."""

from calve.errors import CalveError

_REMEDY = (
    "Look it up in the documentation of the catalog, or ask who runs it. If that does not help, send us the report."
)


def message_of(error: BaseException) -> str:
    """Return what went wrong."""
    if isinstance(error, CalveError):
        return error.message
    if _is_of_spark(error):
        from calve.steps.spark import cause

        return cause(error)
    text = str(getattr(error, "orig", None) or error).strip()
    return text.partition("\n")[0] or type(error).__name__


def code_of(error: BaseException) -> str:
    """Return the code of an error of calve, and the class of any other."""
    return error.code if isinstance(error, CalveError) else type(error).__name__


def remedy_of(error: BaseException) -> str:
    """Return what to do about it."""
    return error.remedy if isinstance(error, CalveError) else _REMEDY


def _is_of_spark(error: BaseException) -> bool:
    return type(error).__module__.startswith(("pyspark.", "py4j."))
