"""Access control: users, tokens, roles, the audit log and secrets; independent of HTTP.

Import principals, permissions, accounts and secrets from here; ``calve.api.access`` applies them to requests.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
