"""Change capture on Iceberg tables: what changed since a consumer's checkpoint, without reading or copying data.

Import ``Captures``, its records and reports from here, and reports about tables from ``inspection``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
