"""Job templates: params for a step type, or steps that replace a ``template`` step.

Others import the model of templates, their registry, and how they are read and expanded from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
