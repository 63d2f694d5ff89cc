"""Workflows on a calve server, from Python: push, start, wait, act, read."""

from calve.client.client import Client
from calve.client.server import Document

__all__ = ["Client", "Document"]
