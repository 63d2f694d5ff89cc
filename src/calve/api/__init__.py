"""REST: Maestro's paths and more, each with its policy; problem documents; events as a stream."""

from calve.api.app import create_app
from calve.api.services import Services
from calve.api.serving import Serving, listen, serve, url_of

__all__ = ["Services", "Serving", "create_app", "listen", "serve", "url_of"]
