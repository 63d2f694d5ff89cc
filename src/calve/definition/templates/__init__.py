"""Templates: params for a type of job, and pieces of workflows."""

from calve.definition.templates.expanding import expand
from calve.definition.templates.model import JobTemplate, TemplateDefinition, TemplateMetadata
from calve.definition.templates.pushed import PushedTemplates
from calve.definition.templates.reading import read_template, shipped
from calve.definition.templates.registry import JobTemplates, version_of

__all__ = [
    "JobTemplate",
    "JobTemplates",
    "PushedTemplates",
    "TemplateDefinition",
    "TemplateMetadata",
    "expand",
    "read_template",
    "shipped",
    "version_of",
]
