"""Who may use the server: the gate before all routes, and the routes to sign in and to administer."""

from calve.api.access.entrance import Entrance
from calve.api.access.guarding import ROUTERS, guarded
from calve.api.access.origins import Rules, rules
from calve.api.access.provider_http import ProviderHttp

__all__ = ["ROUTERS", "Entrance", "ProviderHttp", "Rules", "guarded", "rules"]
