from .server import routers as routers
