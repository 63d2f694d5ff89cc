from .runtime import Docker as Docker
