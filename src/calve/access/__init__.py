"""Access control: users, tokens, roles, the audit log and secrets; independent of HTTP."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
