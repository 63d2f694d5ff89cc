"""The Http step: sends one request to a host on the allow-list and judges the response.

Import the runtime and its `AllowList`.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
