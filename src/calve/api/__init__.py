"""REST: Maestro's paths and more, each with its policy; problem documents; events as a stream."""

from calve.api.app import create_app
from calve.api.listening import listen, listen_beside, reserve, url_of
from calve.api.services import Services
from calve.api.serving import Serving, serve

__all__ = ["Services", "Serving", "create_app", "listen", "listen_beside", "reserve", "serve", "url_of"]
