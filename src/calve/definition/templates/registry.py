"""The registry of templates: built in and pushed, by type and version."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from calve.definition.model import Params, Tag, TypedStep
from calve.definition.templates.model import DEFAULT_VERSION, JobTemplate, TemplateDefinition
from calve.errors import DefinitionInvalid

Versions = Mapping[str, JobTemplate]
"""The versions of a template."""


class PushedTemplates(Protocol):
    """Finds the templates that were pushed."""

    def templates(self, job_type: str | None = None) -> Sequence[JobTemplate]:
        """Return those of a type, or all, ordered by type and version."""
        ...


class AllTemplates(Mapping[str, Versions]):
    """Templates by type and version; pushed ones are looked up each time, because others push them too."""

    def __init__(self, installed: Mapping[str, Versions], pushed: PushedTemplates) -> None:
        self._installed = installed
        self._pushed = pushed

    def __getitem__(self, job_type: str) -> Versions:
        if job_type in self._installed:
            return self._installed[job_type]
        found = {template.definition.version: template for template in self._pushed.templates(job_type)}
        if not found:
            raise KeyError(job_type)
        return found

    def __iter__(self) -> Iterator[str]:
        pushed = (template.definition.job_type for template in self._pushed.templates())
        yield from dict.fromkeys((*self._installed, *pushed))

    def __len__(self) -> int:
        return sum(1 for _ in self)


VERSION_PARAM = "job_template_version"
"""The workflow param that selects the version if a step does not."""

Merge = Callable[[Params, Params], Params]
"""Overrides params with others."""


def version_of(sub_type_version: str | None, workflow_params: Params) -> str:
    """Return the version that a step uses: its own, else that of the workflow's param, else ``default``."""
    param = workflow_params.get(VERSION_PARAM)
    return sub_type_version or getattr(param, "value", None) or DEFAULT_VERSION


class JobTemplates:
    """Templates by type and version."""

    def __init__(self, templates: Mapping[str, Mapping[str, JobTemplate]]) -> None:
        self._templates = templates

    @classmethod
    def of(cls, templates: Iterable[JobTemplate]) -> "JobTemplates":
        """Return a registry of templates; the later of two of the same type and version wins."""
        found: dict[str, dict[str, JobTemplate]] = {}
        for template in templates:
            found.setdefault(template.definition.job_type, {})[template.definition.version] = template
        return cls(found)

    def with_pushed(self, pushed: PushedTemplates) -> "JobTemplates":
        """Return a registry that also finds pushed templates, even those pushed later."""
        return JobTemplates(AllTemplates(self._templates, pushed))

    def plus(self, template: JobTemplate) -> "JobTemplates":
        """Return a registry with one template added or replaced."""
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
        """Return a template with its metadata; None if there is no such type or version."""
        return self._templates.get(name, {}).get(version or DEFAULT_VERSION)

    def find(self, name: str, version: str | None = None) -> TemplateDefinition | None:
        """Return the definition of a template; None if there is no such type or version."""
        template = self.get(name, version)
        return template.definition if template else None

    def step_type(self, name: str, version: str | None = None) -> str | None:
        """Return the step type of a template; None if there is no such template, or it has steps."""
        found = self.find(name, version)
        return found.step_type if found else None

    def lineage(self, name: str, version: str | None = None) -> tuple[TemplateDefinition, ...]:
        """Return the templates that a template inherits from, and then itself.

        Raises:
            DefinitionInvalid: it does not exist, or inherits from one that does not or from itself.
        """
        return self._lineage(((name, version or DEFAULT_VERSION),))

    def params(self, name: str, version: str | None = None) -> Params:
        """Return the params of a template with those it inherits; its own replace inherited ones."""
        return {key: param for found in self.lineage(name, version) for key, param in found.params.items()}

    def tags(self, name: str, version: str | None = None) -> tuple[Tag, ...]:
        """Return the tags of a template with those it inherits."""
        return tuple({tag.name: tag for found in self.lineage(name, version) for tag in found.tags}.values())

    def step_params(self, step: TypedStep, workflow_params: Params, merge: Merge) -> Params:
        """Return the params of a step over those of its template.

        A workflow's param of the same name comes between the two. A ``sub_type`` without a template is only a label.

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
            raise DefinitionInvalid(f"a template inherits from itself: {shown}", remedy="Remove one inherit_from.")
        parents = [item for parent in found.inherit_from.items() for item in self._lineage((*chain, parent))]
        return (*parents, found)


_Key = tuple[str, str]
