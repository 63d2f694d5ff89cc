"""The options of ``plan`` and ``capture``; a test compares them with those of the REST requests."""

from collections.abc import Sequence
from typing import Literal, TypedDict


class PlanOptions(TypedDict, total=False):
    """The options of a plan, as ``calve plan --help`` explains them."""

    ranges: Sequence[str]
    """Columns whose range of changed values is reported."""
    mode: Literal["table", "range", "path", "view"]
    """An ICDC table (the default), only the ranges, metadata by its path, or a Spark view."""
    max_files: int
    max_bytes: int
    """How much to capture from each table at most."""
    start: str
    """Where to start if there is no checkpoint: ``latest``, a snapshot id, a tag, a branch or a time."""
    end: str
    """Where to stop. Default: now."""
    on_gap: Literal["fail", "upserts", "full"]
    """What to do if snapshots since the checkpoint have expired."""
    on_schema_change: Literal["evolve", "fail"]
    """What to do if the schema changed since the checkpoint."""


class CaptureOptions(PlanOptions, total=False):
    """The options of a capture, as ``calve capture --help`` explains them."""

    key: str
    """A name for the request: repeating it returns the same capture."""
    lease: bool
    """Tag the captured snapshots until the commit, so that expiry keeps their files."""
    supersede: bool
    """Abandon the capture that the consumer has open."""
