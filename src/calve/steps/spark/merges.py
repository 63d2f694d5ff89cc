"""Merges rows into a table by ``calve.merge``, as a step says it."""

from collections.abc import Mapping
from typing import Any, cast

from calve.engine.ports import Outcome, State
from calve.errors import CalveError, SourceUnstable
from calve.merging import merge
from calve.steps.failures import of_error, of_user, told
from calve.steps.spark.failing import translated
from calve.steps.spark.opening import Opened


def run_merge(opened: Opened, given: Mapping[str, Any]) -> Outcome:
    """Merge; what was found and chosen is told in the log.

    Raises:
        StepFailed: it makes no sense, or Spark could not do it.
    """
    context = opened.context
    with translated(context, f"The merge into {given['into']}", opened.last_words):
        try:
            merged = merge(cast("Any", opened.spark), **given, log=lambda line: context.log(f"-- {line.rstrip()}\n"))
        except SourceUnstable as error:  # what the source gives is up to the user
            raise of_user(told(error)) from error
        except CalveError as error:
            raise of_error(error) from error
    kept = {
        "plan": merged.plan,
        "reason": merged.reason,
        "rows": merged.rows,
        "matched": merged.matched,
        "appended": merged.appended,
        "parts": [{"part": part.name, "rows": part.rows, "seconds": round(part.seconds, 3)} for part in merged.parts],
    }
    return Outcome(State.DONE, {"row_count": merged.rows}, {"merge": kept})
