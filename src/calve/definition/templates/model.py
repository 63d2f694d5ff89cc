"""The model of templates as they are pushed and stored: metadata, and a definition with params or steps."""

from typing import Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from calve.definition.model import Description, GitInfo, Model, Params, Rule, Step, StepId, Tags

DEFAULT_VERSION = "default"


class TemplateMetadata(Model):
    """The metadata of a template: its owner, status, support and origin."""

    owner: str | dict[str, Any]
    status: str
    support: str
    version_author: str | dict[str, Any] | None = None
    test_workflows: tuple[str, ...] = ()
    git_info: GitInfo | None = None
    create_time: int | None = None
    extra_info: dict[str, Any] = Field(default_factory=dict)


class TemplateDefinition(Model):
    """The content of a template: params for steps of one type, or steps to insert into a workflow."""

    job_type: StepId
    step_type: str | None = None
    version: str = DEFAULT_VERSION
    description: Description | None = None
    tags: Tags = ()
    inherit_from: dict[str, str] = Field(default_factory=dict)
    """The templates whose params it inherits, each with its version; the last one wins."""
    params: Params = Field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    """The steps that replace a ``template`` step of this type."""
    run_strategy: Rule | None = None
    """The run strategy of a workflow with these steps, unless it has its own."""

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> "TemplateDefinition":
        if (self.step_type is None) != bool(self.steps):
            raise PydanticCustomError("template_kind", "a template has either a step_type or steps")
        return self

    @property
    def is_workflow(self) -> bool:
        """Tell whether it has steps."""
        return self.step_type is None


class JobTemplate(Model):
    """A template in one version."""

    metadata: TemplateMetadata
    definition: TemplateDefinition

    @model_validator(mode="before")
    @classmethod
    def _from_request(cls, value: Any) -> Any:
        """Accept a push request, in which the metadata and other keys are beside the definition."""
        if not isinstance(value, dict) or "metadata" in value or "definition" not in value:
            return value
        known = {key: item for key, item in value.items() if key in TemplateMetadata.model_fields}
        own = {key: item for key, item in value.items() if key not in {*known, "definition"}}
        extra = {**known.pop("extra_info", {}), **own}
        return {"metadata": {**known, "extra_info": extra}, "definition": value["definition"]}
