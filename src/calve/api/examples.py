"""Examples of what is sent, for the OpenAPI document."""

from typing import Any

_WORKFLOW = {
    "properties": {"owner": "ann", "run_strategy": "sequential"},
    "workflow": {
        "id": "demo.hello",
        "steps": [{"step": {"id": "hello", "type": "NoOp"}}],
    },
}
_YAML = "Workflow:\n  id: demo.hello\n  jobs:\n    - job:\n        id: hello\n        type: NoOp\n"

_TEMPLATE = {
    "owner": "ann",
    "status": "production",
    "support": "data@example.com",
    "definition": {
        "job_type": "report",
        "step_type": "Shell",
        "params": {"shell": {"type": "MAP", "value": {"script": {"type": "STRING", "value": "make report"}}}},
    },
}
_YAML_TEMPLATE = """\
owner: ann
status: production
support: data@example.com
definition:
  job_type: report
  step_type: Shell
  params:
    shell: {type: MAP, value: {script: {type: STRING, value: make report}}}
"""


def _body(media: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media: {"schema": schema, "example": example}}}}


JSON_BODY = _body("application/json", {"type": "object"}, _WORKFLOW)
"""A definition in Maestro's JSON, or any other form of it."""
YAML_BODY = _body("application/yaml", {"type": "string"}, _YAML)
"""A definition in YAML."""
JSON_TEMPLATE = _body("application/json", {"type": "object"}, _TEMPLATE)
"""A job template in Maestro's JSON."""
YAML_TEMPLATE = _body("application/yaml", {"type": "string"}, _YAML_TEMPLATE)
"""A job template in YAML."""
