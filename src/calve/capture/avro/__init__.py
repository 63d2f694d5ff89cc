"""The part of Avro that Iceberg's manifests need: fast, and safe with untrusted files.

Import readers, writers and containers from here; only ``calve.capture`` does. A schema is compiled once into plain
functions that read, skip or write one value. Fields that are not needed are skipped, and the raw bytes of a value can
be copied unchanged, so that unknown columns are kept. Every length is compared with the remaining bytes, every count
and decompressed size with a limit.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
