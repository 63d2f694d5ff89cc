"""Durations and retry numbers, written as numbers, as words or as references."""

from typing import Any

import pytest
from tests.unit.definition.params.cases import cases

from calve.definition.model import FixedBackoff, RetryPolicy
from calve.definition.model.steps import ExponentialBackoff
from calve.definition.params.retries import (
    DAY,
    ParsedRetryPolicy,
    RetryReason,
    parse_duration,
    parse_retry_policy,
)
from calve.definition.params.secrets import Secret
from calve.errors import ParamError

_DURATIONS = cases("misc_cases.jsonl", kind="duration")


def test_every_case_of_maestro_is_here() -> None:
    """25 durations."""
    assert len(_DURATIONS) == 25


@pytest.mark.parametrize("case", _DURATIONS, ids=lambda case: repr(case["value"]))
def test_a_timeout_is_read_as_maestro_reads_it(case: dict[str, Any]) -> None:
    """Bare numbers are seconds; words that are no duration are passed over."""
    if "error" in case:
        with pytest.raises(ParamError) as raised:
            parse_duration(case["value"], {})
        assert case["error_contains"] in raised.value.message
    else:
        assert parse_duration(case["value"], case.get("params", {})) == case["expect_ms"]


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (90, 90_000),
        ("+5", 5_000),
        ("2H", 7_200_000),
        ("1h30min", 5_400_000),
        ("5 ms", 5),
        ("99999999999999999999 days 1s", 1_000),
        (10_368_000, 120 * DAY),
    ],
)
def test_other_spellings_of_a_timeout(value: int | str, milliseconds: int) -> None:
    """Any case, no spaces, signs; a number beyond 64 bits counts nothing."""
    assert parse_duration(value, {}) == milliseconds


def test_a_timeout_names_the_limit_it_passes() -> None:
    """The text as it was written stands in the message, in quotes."""
    with pytest.raises(ParamError) as raised:
        parse_duration("8 days", {}, limit_days=7)
    assert raised.value.message == (
        'timeout [691200000 ms]/["8 days"] cannot be non-positive or more than system limit: 7 days'
    )
    with pytest.raises(ParamError, match=r"timeout \[-1000 ms\]/\[-1\]"):
        parse_duration(-1, {})


def test_a_long_row_of_digits_is_read_quickly() -> None:
    """The time grows with the length, not with its square."""
    with pytest.raises(ParamError):
        parse_duration("1" * 200_000, {})


def test_a_secret_is_no_duration() -> None:
    """And is not shown."""
    with pytest.raises(ParamError, match="holds a secret"):
        parse_duration("$x", {"x": Secret("s")})


def test_without_a_policy_the_defaults_count() -> None:
    """Errors twice within ten minutes, the platform ten times within an hour, timeouts never."""
    policy = parse_retry_policy(None, {})
    assert policy == parse_retry_policy(RetryPolicy(), {}) == ParsedRetryPolicy()
    assert [policy.delay(RetryReason.ERROR, retries) for retries in range(6)] == [60, 120, 240, 480, 600, 600]
    assert policy.delay(RetryReason.PLATFORM, 10**9) == 3_600
    assert policy.delay(RetryReason.TIMEOUT, 1) == 120
    assert policy.can_retry(RetryReason.ERROR, 1)
    assert not policy.can_retry(RetryReason.ERROR, 2)
    assert not policy.can_retry(RetryReason.TIMEOUT, 0)
    assert policy.can_retry(RetryReason.PLATFORM, 9)


def test_an_exponential_backoff_takes_numbers_words_and_references() -> None:
    """What is not given keeps its default."""
    backoff = ExponentialBackoff(
        error_retry_backoff_in_secs="10 s", error_retry_exponent="$factor", error_retry_limit_in_secs=1000
    )
    policy = parse_retry_policy(RetryPolicy(error_retry_limit="${tries}", backoff=backoff), {"tries": 5, "factor": "3"})
    assert [policy.delay(RetryReason.ERROR, retries) for retries in range(6)] == [10, 30, 90, 270, 810, 1000]
    assert policy.error.limit == 5
    assert policy.delay(RetryReason.PLATFORM, 0) == 60


def test_an_exponent_of_zero_or_one_is_taken_literally() -> None:
    """The first wait is the base either way."""
    for exponent, delays in ((0, [7, 0, 0]), (1, [7, 7, 7])):
        backoff = ExponentialBackoff(timeout_retry_backoff_in_secs=7, timeout_retry_exponent=exponent)
        policy = parse_retry_policy(RetryPolicy(backoff=backoff), {})
        assert [policy.delay(RetryReason.TIMEOUT, retries) for retries in range(3)] == delays


def test_a_fixed_backoff_waits_equally_long() -> None:
    """Sixty seconds unless it says otherwise."""
    backoff = FixedBackoff(error_retry_backoff_in_secs=86_400)
    policy = parse_retry_policy(RetryPolicy(backoff=backoff), {})
    assert [policy.delay(RetryReason.ERROR, retries) for retries in (0, 50)] == [86_400, 86_400]
    assert [policy.delay(RetryReason.PLATFORM, retries) for retries in (0, 50)] == [60, 60]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            RetryPolicy(error_retry_limit=100),
            "error_retry_limit value [100] is parsed to [100] but cannot be less than [0] or more than [99]",
        ),
        (RetryPolicy(timeout_retry_limit="x"), 'timeout_retry_limit value ["x"] is parsed to [x] but not a number'),
        (
            RetryPolicy(backoff=FixedBackoff(platform_retry_backoff_in_secs="2 days")),
            (
                'backoff.platform_retry_backoff_in_secs value ["2 days"] is parsed to [172800] but cannot be less than '
                "[1] or more than [86400]"
            ),
        ),
        (
            RetryPolicy(backoff=ExponentialBackoff(error_retry_exponent="1.5")),
            'backoff.error_retry_exponent value ["1.5"] is parsed to [1.5] but not a number',
        ),
    ],
)
def test_a_retry_number_out_of_bounds_is_named(policy: RetryPolicy, message: str) -> None:
    """In Maestro's words."""
    with pytest.raises(ParamError) as raised:
        parse_retry_policy(policy, {})
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("15m", 900_000), ("1h 5m", 3_900_000), ("2 m", 120_000), ("5 months 1s", 1_000)]
)
def test_a_bare_m_is_a_minute(text: str, milliseconds: int) -> None:
    """Unlike in Maestro, where it counts for nothing; other words still do."""
    assert parse_duration(text, {}) == milliseconds
