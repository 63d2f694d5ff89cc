"""Just enough Avro for Iceberg's manifests: fast, and safe with untrusted files.

A schema is compiled once into plain functions that read, skip or write one value. Fields that are not asked for are
skipped, and the raw bytes of a value can be cut out and written again unchanged, so a column that this code does not
know survives a copy. Nothing that a file says about itself is trusted: every length is checked against the bytes that
are left, and every count and decompressed size against a limit.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
