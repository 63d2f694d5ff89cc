"""Definitions in Maestro's shape."""

from typing import Any

from calve.engine.model import VersionRecord, WorkflowRecord

Json = dict[str, Any]


def properties_json(workflow: WorkflowRecord) -> Json:
    """Return the newest properties of a workflow."""
    return {"workflow_id": workflow.workflow_id, "create_time": workflow.modified_at, **workflow.properties}


def version_json(workflow: WorkflowRecord, version: VersionRecord) -> Json:
    """Return a version of a workflow, with the workflow's properties."""
    definition = dict(version.definition)
    return {
        "properties_snapshot": properties_json(workflow),
        "metadata": _metadata(version),
        "workflow": definition["workflow"],
        "is_active": workflow.active_version == version.version_id,
        "is_default": (workflow.active_version or workflow.latest_version) == version.version_id,
        "is_latest": workflow.latest_version == version.version_id,
        "modify_time": workflow.modified_at,
    }


def _metadata(version: VersionRecord) -> Json:
    told = {
        "workflow_id": version.workflow_id,
        "workflow_version_id": version.version_id,
        "create_time": version.created_at,
        "version_author": {"name": version.author},
        "git_info": version.definition.get("git_info"),
    }
    return {name: value for name, value in told.items() if value is not None}
