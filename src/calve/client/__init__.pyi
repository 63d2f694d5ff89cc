from .client import Client as Client, connect as connect
