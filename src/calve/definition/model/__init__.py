"""The model of a workflow definition, with the names of Maestro.

Others import the models of workflows, steps, params, triggers and alerting from here.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
