"""What a user may write: workflows, steps, params, triggers. Pure."""

from calve.definition.giving import given_params
from calve.definition.loading import Loaded, load
from calve.definition.model.workflow import Definition
from calve.definition.problems import Problem, Severity
from calve.definition.rendering import rendered
from calve.definition.schema import schema
from calve.definition.script_folder import ScriptFolder
from calve.definition.scripts import Scripts
from calve.definition.vocabulary import Vocabulary, installed
from calve.definition.writing import to_json, to_yaml

__all__ = [
    "Definition",
    "Loaded",
    "Problem",
    "ScriptFolder",
    "Scripts",
    "Severity",
    "Vocabulary",
    "given_params",
    "installed",
    "load",
    "rendered",
    "schema",
    "to_json",
    "to_yaml",
]
