"""The Shell, Python, Java and Notebook steps: programs on the worker's machine.

`run_python` is for other step types that call a Python function in a process of its own.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
