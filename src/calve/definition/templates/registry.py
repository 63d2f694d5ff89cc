"""The templates that there are, each in its versions."""

from collections.abc import Callable, Iterable, Mapping

from calve.definition.model.params import Params
from calve.definition.model.steps import TypedStep
from calve.definition.model.tags import Tag
from calve.definition.templates.model import DEFAULT_VERSION, JobTemplate, TemplateDefinition
from calve.definition.templates.pushed import AllTemplates, PushedTemplates
from calve.errors import DefinitionInvalid

VERSION_PARAM = "job_template_version"
"""The workflow param that chooses the version where a step does not."""

Merge = Callable[[Params, Params], Params]
"""Puts params above others."""


def version_of(sub_type_version: str | None, workflow_params: Params) -> str:
    """Return the version that a step takes: its own, else that of the workflow's param, else ``default``."""
    param = workflow_params.get(VERSION_PARAM)
    return sub_type_version or getattr(param, "value", None) or DEFAULT_VERSION


class JobTemplates:
    """Templates by type and version."""

    def __init__(self, templates: Mapping[str, Mapping[str, JobTemplate]]) -> None:
        self._templates = templates

    @classmethod
    def of(cls, templates: Iterable[JobTemplate]) -> "JobTemplates":
        """Return a registry of some templates; of two of one type and version the later counts."""
        found: dict[str, dict[str, JobTemplate]] = {}
        for template in templates:
            found.setdefault(template.definition.job_type, {})[template.definition.version] = template
        return cls(found)

    def with_pushed(self, pushed: PushedTemplates) -> "JobTemplates":
        """Return a registry that knows those, too, which were pushed, and whenever they were."""
        return JobTemplates(AllTemplates(self._templates, pushed))

    def plus(self, template: JobTemplate) -> "JobTemplates":
        """Return a registry with one template more, or in another form."""
        about = template.definition
        versions = {**self._templates.get(about.job_type, {}), about.version: template}
        return JobTemplates({**self._templates, about.job_type: versions})

    def all(self) -> list[JobTemplate]:
        """Return every template in every version."""
        return [template for versions in self._templates.values() for template in versions.values()]

    def names(self) -> tuple[str, ...]:
        """Return the types that a job may have."""
        return tuple(name for name in self._templates if not self._is_workflow(name))

    def workflow_names(self) -> tuple[str, ...]:
        """Return the types that a ``template`` step may have."""
        return tuple(name for name in self._templates if self._is_workflow(name))

    def versions(self, name: str) -> tuple[str, ...]:
        """Return the versions of a type."""
        return tuple(self._templates.get(name, ()))

    def get(self, name: str, version: str | None = None) -> JobTemplate | None:
        """Return a template with its metadata; None where there is no such type or version."""
        return self._templates.get(name, {}).get(version or DEFAULT_VERSION)

    def find(self, name: str, version: str | None = None) -> TemplateDefinition | None:
        """Return what a template gives; None where there is no such type or version."""
        template = self.get(name, version)
        return template.definition if template else None

    def step_type(self, name: str, version: str | None = None) -> str | None:
        """Return the step type that a template is of; None where there is no such template, or it holds steps."""
        found = self.find(name, version)
        return found.step_type if found else None

    def lineage(self, name: str, version: str | None = None) -> tuple[TemplateDefinition, ...]:
        """Return a template after all that it inherits from, nearest last.

        Raises:
            DefinitionInvalid: it is not there, or inherits from one that is not there or from itself.
        """
        return self._lineage(((name, version or DEFAULT_VERSION),))

    def params(self, name: str, version: str | None = None) -> Params:
        """Return the params of a template with those it inherits; one of its own replaces an inherited one whole."""
        return {key: param for found in self.lineage(name, version) for key, param in found.params.items()}

    def tags(self, name: str, version: str | None = None) -> tuple[Tag, ...]:
        """Return the tags of a template with those it inherits."""
        return tuple({tag.name: tag for found in self.lineage(name, version) for tag in found.tags}.values())

    def step_params(self, step: TypedStep, workflow_params: Params, merge: Merge) -> Params:
        """Return the params of a step above those of its template.

        A workflow's param of the same name stands between the two. A ``sub_type`` that no template has is a mere label.

        Raises:
            DefinitionInvalid: the template is of another step type, or cannot be resolved.
        """
        if step.sub_type is None:
            return step.params
        version = version_of(step.sub_type_version, workflow_params)
        found = self.find(step.sub_type, version)
        if found is None:
            return step.params
        if (found.step_type or "").casefold() != step.type.casefold():
            raise DefinitionInvalid(
                f"step {step.id} is of type {step.type}, but its template {found.job_type} is of {found.step_type}.",
                remedy=f"Write type: {found.job_type} alone; the step type follows from it.",
            )
        below = self.params(found.job_type, version)
        between = {name: workflow_params[name] for name in below if name in workflow_params}
        return merge(merge(below, between), step.params)

    def _is_workflow(self, name: str) -> bool:
        return any(template.definition.is_workflow for template in self._templates[name].values())

    def _lineage(self, chain: "tuple[_Key, ...]") -> tuple[TemplateDefinition, ...]:
        key = chain[-1]
        shown = " -> ".join(f"{name} {version}" for name, version in chain)
        found = self.find(*key)
        if found is None:
            known = ", ".join(self.versions(key[0]))
            remedy = f"Versions of {key[0]}: {known}." if known else f"Push a template {key[0]} first."
            raise DefinitionInvalid(f"there is no template {key[0]} {key[1]}: {shown}", remedy=remedy)
        if key in chain[:-1]:
            raise DefinitionInvalid(f"a template inherits from itself: {shown}", remedy="Take one inherit_from away.")
        parents = [item for parent in found.inherit_from.items() for item in self._lineage((*chain, parent))]
        return (*parents, found)


_Key = tuple[str, str]
