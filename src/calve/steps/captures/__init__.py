"""The steps of incremental processing: IpCapture, IpCommit and the older ICDC."""

from calve.steps.captures.icdc import ICDC
from calve.steps.captures.ip_capture import IpCapture
from calve.steps.captures.ip_commit import IpCommit

__all__ = ["ICDC", "IpCapture", "IpCommit"]
