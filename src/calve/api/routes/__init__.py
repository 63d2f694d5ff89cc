"""The routes, by what they are about."""

from calve.api.routes import instances, starts, workflows

ROUTERS = (workflows.router, starts.router, instances.router)

__all__ = ["ROUTERS"]
