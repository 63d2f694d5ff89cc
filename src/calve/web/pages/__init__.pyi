from .routers import ROUTERS as ROUTERS
