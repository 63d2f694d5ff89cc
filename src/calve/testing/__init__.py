"""Test tools for users' own tables and pipelines: a history fuzzer, and replicas kept by captures.

``pip install 'calve[testing]'`` installs hypothesis, which only ``run_histories`` needs.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
