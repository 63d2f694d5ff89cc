from .expansion import expand as expand
from .model import (
    JobTemplate as JobTemplate,
    TemplateDefinition as TemplateDefinition,
    TemplateMetadata as TemplateMetadata,
)
from .reader import read_template as read_template, shipped as shipped
from .registry import JobTemplates as JobTemplates, PushedTemplates as PushedTemplates, version_of as version_of
