"""The JSON Schema of definitions, with which editors complete and check them; others import ``schema``.

It knows the YAML of the talk (``Workflow`` with ``jobs``), the early form with flat ``steps``, and Maestro's requests.
An unknown key of a workflow or job is a param, so the schema accepts it: ``calve validate`` finds more.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
