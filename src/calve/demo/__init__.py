"""The demo: the playback pipeline of the examples on generated events, with a lookback window and incrementally.

Only ``calve demo`` imports it.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
