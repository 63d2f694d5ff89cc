"""Step runtimes: the code that runs each step type.

`load_runtimes` and `Services` are for the application; `Outcome`, `State`, `StepContext`, `fields` and `settled` are
what a plug-in needs to write a step type of its own.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
