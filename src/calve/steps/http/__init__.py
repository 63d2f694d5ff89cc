"""The Http step: one request to a host that the settings allow, and a judgement of the answer."""

from calve.steps.http.runtime import Http

__all__ = ["Http"]
