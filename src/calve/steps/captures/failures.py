"""What an error of the lake, of a capture or of a delivery means for the step that met it."""

from collections.abc import Iterator
from contextlib import contextmanager

from calve.errors import (
    CaptureError,
    ConcurrentCapture,
    DeliveryError,
    LakeError,
    RequestInvalid,
    SettingsInvalid,
    SourceBusy,
)
from calve.steps.failures import fatal, of_platform

_PASSING = (SourceBusy, ConcurrentCapture)
"""Somebody else was at it at the same moment."""


@contextmanager
def told_to_the_engine() -> Iterator[None]:
    """Turn what goes wrong into the failure of a step: of the platform where a retry may cure it, else fatal.

    Raises:
        StepFailed: something went wrong.
    """
    try:
        yield
    except (CaptureError, DeliveryError, LakeError, RequestInvalid, SettingsInvalid) as error:
        # A bare LakeError is a catalog or a file system that does not answer; what is wrong for good has a name.
        is_passing = isinstance(error, _PASSING) or type(error) is LakeError
        raise (of_platform if is_passing else fatal)(error.message, remedy=error.remedy) from error
