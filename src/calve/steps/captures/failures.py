"""What an error of the lake, of a capture or of a delivery means for the step that met it."""

from collections.abc import Iterator
from contextlib import contextmanager

from calve.errors import (
    AccessError,
    CaptureError,
    DeliveryError,
    EnvironmentUnfit,
    LakeError,
    RequestInvalid,
    SettingsInvalid,
)
from calve.steps.failures import of_error

_TOLD = (AccessError, CaptureError, DeliveryError, EnvironmentUnfit, LakeError, RequestInvalid, SettingsInvalid)


@contextmanager
def told_to_the_engine() -> Iterator[None]:
    """Turn what goes wrong into the failure of a step: of the platform where a retry may cure it, else fatal.

    Raises:
        StepFailed: something went wrong.
    """
    try:
        yield
    except _TOLD as error:
        raise of_error(error) from error
