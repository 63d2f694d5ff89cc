"""Runs the history fuzzer."""

import secrets
from typing import cast

from calve.errors import EnvironmentUnfit
from calve.testing.writers import Writer

_BATCH = 10
"""Examples per run: after about ten, hypothesis starts to vary earlier examples, but new ones find more here."""


def run_histories(
    *writers: Writer, examples: int = 100, steps: int = 12, shrink: bool = True, seed: int | None = None
) -> None:
    """Check captures over random histories of tables, each written by one of the writers.

    >>> def test_captures_of_what_we_write(tmp_path):  # doctest: +SKIP
    ...     run_histories(PyIcebergWriter(calve.settings.load(tmp_path), format_version=2), examples=50)

    Args:
        writers: the writers of the tables: ``PyIcebergWriter``, ``SparkWriter``, or your own.
        examples: how many histories.
        steps: how many events each has, at most.
        shrink: search for the shortest history that fails, which is slow if writing is.
        seed: repeats the same histories; an error has a note with its seed.

    Raises:
        AssertionError: a capture returned wrong rows or raised the wrong error; a note has the history.
        EnvironmentUnfit: hypothesis is not installed.
    """
    try:
        import hypothesis
        from hypothesis.stateful import run_state_machine_as_test
    except ModuleNotFoundError as error:
        raise EnvironmentUnfit("The history fuzzer needs hypothesis.", remedy="pip install 'calve[testing]'") from error
    from calve.testing.crashes import Crashes
    from calve.testing.machine import HistoryMachine

    first = secrets.randbelow(1_000_000_000) if seed is None else seed
    crashes = Crashes()

    def machine() -> HistoryMachine:
        return HistoryMachine(writers, crashes)

    try:
        for done in range(0, examples, _BATCH):
            run_state_machine_as_test(
                # hypothesis accepts any function that returns a machine, although its types ask for the class
                cast("type[HistoryMachine]", hypothesis.seed(first + done)(machine)),
                settings=hypothesis.settings(
                    max_examples=min(_BATCH, examples - done),
                    stateful_step_count=steps,
                    deadline=None,
                    database=None,
                    suppress_health_check=list(hypothesis.HealthCheck),
                    phases=[phase for phase in hypothesis.Phase if shrink or phase is not hypothesis.Phase.shrink],
                ),
            )
    except Exception as error:
        error.add_note(f"run_histories(..., examples={_BATCH}, steps={steps}, seed={first + done}) repeats it.")
        raise
    finally:
        crashes.close()
