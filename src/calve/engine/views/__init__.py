"""Views of the engine's records: overviews of instances, and documents in Maestro's format.

Import documents, and the functions that make them, from here; nothing here changes a record.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
