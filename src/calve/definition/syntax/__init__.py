"""The syntax of YAML and JSON: texts read into documents with positions, and values written as texts. Pure.

Others import ``read``, ``to_yaml`` and ``to_json`` from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
