from .document import schema as schema
