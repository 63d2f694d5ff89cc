"""The parts of Java that SEL uses: numbers, String.format, regular expressions, the order of a HashMap, JSON. Pure.

Definitions use it, too, to write JSON and to parse numbers like Java.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
