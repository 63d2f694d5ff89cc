"""What not retried and what is tried again: the table, and the page that shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from calve.engine import State
from calve.errors import CalveError, StepFailed
from calve.steps.failures import failure_of
from calve.steps.retries import RULES, Evidence, Kind, RetryRule, evidence_in, state_of

PAGE = Path(__file__).parents[3] / "docs" / "explain" / "retries.md"
THEN = {
    State.FATAL_ERROR: "not retried",
    State.USER_ERROR: "retried as an error",
    State.PLATFORM_ERROR: "retried as a platform failure",
    State.INFRASTRUCTURE_ERROR: "retried immediately",
}
TRACEBACK = """Traceback (most recent call last):
  File "app.py", line 3, in <module>
pyspark.errors.exceptions.captured.AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] No. SQLSTATE: 42P01; line 1 pos 14;
"""


def _row(rule: RetryRule) -> str:
    codes = ", ".join(
        f"`{code}xx`" if rule.kind is Kind.HTTP and len(code) == 1 else f"`{code}`" for code in rule.codes
    )
    return f"| {rule.kind} | {codes} | {rule.means} | {THEN[rule.state]} |"


def _errors(root: type[CalveError] = CalveError) -> Iterator[type[CalveError]]:
    """Yield every error of the tree; failures of steps and of tests have others below them."""
    if root.__module__ == CalveError.__module__:
        yield root
    for child in root.__subclasses__():
        yield from _errors(child)


def test_the_page_shows_the_table() -> None:
    """Every rule, in the order in which they are read, and nothing else."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(tuple(f"| {kind} |" for kind in Kind))]
    assert rows == [_row(rule) for rule in RULES]


def test_the_page_names_the_errors_of_calve_that_pass() -> None:
    """All of them, and no other."""
    section = PAGE.read_text().partition("## Errors of calve itself")[2]
    named = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    assert named == {kind.code for kind in _errors() if kind.is_passing}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.kind} {rule.codes[0]}")
def test_every_rule_can_decide(rule: RetryRule) -> None:
    """No rule is hidden behind another of its kind."""
    for code in rule.codes:
        assert state_of([(rule.kind, code)]) is rule.state


@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        ([], State.USER_ERROR),
        ([(Kind.SQLSTATE, "XX000")], State.USER_ERROR),
        ([(Kind.SQLSTATE, "23505")], State.USER_ERROR),
        ([(Kind.SQLSTATE, "57014")], State.USER_ERROR),
        ([(Kind.SQLSTATE, "57P01")], State.INFRASTRUCTURE_ERROR),
        ([(Kind.SQLSTATE, "58030"), (Kind.SQLSTATE, "22012")], State.FATAL_ERROR),
        ([(Kind.SQLSTATE, "42P01"), (Kind.EXCEPTION, "CommitFailedException")], State.INFRASTRUCTURE_ERROR),
        ([(Kind.HTTP, "404")], State.FATAL_ERROR),
        ([(Kind.HTTP, "500")], State.USER_ERROR),
        ([(Kind.HTTP, "302")], State.USER_ERROR),
        ([(Kind.EXIT, "1")], State.USER_ERROR),
    ],
)
def test_the_first_rule_that_fits_decides(evidence: list[Evidence], state: State) -> None:
    """What no rule fits is tried again as often as the step says."""
    assert state_of(evidence) is state


def test_evidence_is_found_in_what_a_program_prints() -> None:
    """Names of exceptions, SQLSTATEs and conditions, of Python and of Java."""
    found = list(evidence_in(TRACEBACK))
    assert (Kind.EXCEPTION, "AnalysisException") in found
    assert (Kind.SQLSTATE, "42P01") in found
    assert (Kind.CONDITION, "TABLE_OR_VIEW_NOT_FOUND") in found
    java = 'Exception in thread "main" a.b.Outer$InnerException: no\nCaused by: java.lang.NoClassDefFoundError: x/Y'
    names = [code for kind, code in evidence_in(java) if kind is Kind.EXCEPTION]
    assert names == ["InnerException", "NoClassDefFoundError"]


@pytest.mark.parametrize("kind", [kind for kind in _errors() if kind is not StepFailed], ids=lambda kind: kind.code)
def test_an_error_of_calve_fails_a_step_by_its_place_in_the_tree(kind: type[CalveError]) -> None:
    """What may pass is tried again, all else is not."""
    error = kind.__new__(kind)
    CalveError.__init__(error, "no", remedy="Mend it.")
    failure = failure_of(error)
    assert failure.context["state"] is (State.INFRASTRUCTURE_ERROR if kind.is_passing else State.FATAL_ERROR)
    assert (failure.message, failure.remedy) == ("no", "Mend it.")
