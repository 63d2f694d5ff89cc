"""The tables of the state database, and nothing else: every column is declared here, once.

Import tables and the conditions of their partial indexes from here; ``metadata`` holds all of them.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
