"""Exactly-once delivery: each row that a job writes reaches its target tables once, even if processes crash.

The job writes to a branch of its own. Publishing is one catalog commit for each target, which moves `main` to the
branch and records the delivery in a table property. `Deliveries` holds the use cases; the rest are its values.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
