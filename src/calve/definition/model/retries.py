"""When a failed step is tried again."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from calve.definition.model.base import Model


def _is_number_or_text(value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise PydanticCustomError("not_a_duration", "must be a whole number or a text such as 2 hours")
    return value


ParsableLong = Annotated[int | str, BeforeValidator(_is_number_or_text)]
"""A number, or a text that holds one: ``"3600"``, ``"2 hours"``, ``"${param}"``."""


class ExponentialBackoff(Model):
    """Waits longer each time, up to a limit."""

    type: Literal["EXPONENTIAL_BACKOFF"] = "EXPONENTIAL_BACKOFF"
    error_retry_backoff_in_secs: ParsableLong | None = None
    error_retry_exponent: ParsableLong | None = None
    error_retry_limit_in_secs: ParsableLong | None = None
    platform_retry_backoff_in_secs: ParsableLong | None = None
    platform_retry_exponent: ParsableLong | None = None
    platform_retry_limit_in_secs: ParsableLong | None = None
    timeout_retry_backoff_in_secs: ParsableLong | None = None
    timeout_retry_exponent: ParsableLong | None = None
    timeout_retry_limit_in_secs: ParsableLong | None = None


class FixedBackoff(Model):
    """Waits equally long each time."""

    type: Literal["FIXED_BACKOFF"] = "FIXED_BACKOFF"
    error_retry_backoff_in_secs: ParsableLong | None = None
    platform_retry_backoff_in_secs: ParsableLong | None = None
    timeout_retry_backoff_in_secs: ParsableLong | None = None


Backoff = Annotated[ExponentialBackoff | FixedBackoff, Field(discriminator="type")]


class RetryPolicy(Model):
    """How often a step is tried again, for each of three reasons."""

    error_retry_limit: ParsableLong | None = None
    platform_retry_limit: ParsableLong | None = None
    timeout_retry_limit: ParsableLong | None = None
    backoff: Backoff | None = None
