"""Incremental processing for data lakes on Apache Iceberg."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calve.merging import merge

__version__ = "0.1.0"
__all__ = ["__version__", "merge"]


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that ``import calve`` stays cheap."""
    if name != "merge":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from calve.merging import merge

    return merge
