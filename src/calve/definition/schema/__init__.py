"""The JSON Schema of what users write: editors complete and check definitions with it.

It knows the YAML of the talk (``Workflow`` with ``jobs``), the early form with flat ``steps``, and Maestro's requests.
A key of a workflow or job that means nothing else is a param, so the schema lets it pass: ``calve validate`` sees more.
"""

from calve.definition.schema.document import schema

__all__ = ["schema"]
