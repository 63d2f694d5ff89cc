"""The safe expression language (SEL) of Maestro: parse, evaluate, lint and analyse expressions. Pure.

Import what parses, checks and evaluates expressions from here; others also use the arithmetic of ``java``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
