"""The safe expression language (SEL) of Maestro: parse, evaluate, lint and analyse expressions. Pure."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
