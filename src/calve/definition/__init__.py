"""What a user may write: workflows, steps, params, triggers. Pure."""

from calve.definition.giving import given_params
from calve.definition.loading import Loaded, load
from calve.definition.model.workflow import Definition
from calve.definition.problems import Problem, Severity
from calve.definition.rendering import rendered
from calve.definition.schema import schema
from calve.definition.script_folder import ProjectFiles, ScriptFolder
from calve.definition.scripts import Scripts, StepFiles
from calve.definition.template_loading import load_template
from calve.definition.templates import JobTemplate
from calve.definition.vocabulary import Vocabulary, installed, vocabulary_with
from calve.definition.writing import to_json, to_yaml

__all__ = [
    "Definition",
    "JobTemplate",
    "Loaded",
    "Problem",
    "ProjectFiles",
    "ScriptFolder",
    "Scripts",
    "Severity",
    "StepFiles",
    "Vocabulary",
    "given_params",
    "installed",
    "load",
    "load_template",
    "rendered",
    "schema",
    "to_json",
    "to_yaml",
    "vocabulary_with",
]
