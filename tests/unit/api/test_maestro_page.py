"""docs/reference/maestro-documents.md says of every field of Maestro's documents whether it is in ours."""

from pathlib import Path

import pytest

from calve.engine import views as models
from calve.engine.views import Document
from calve.operations import models as answers

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "maestro-documents.md"
MODELS: tuple[type[Document], ...] = (
    models.WorkflowInstance,
    models.RunConfig,
    models.RestartConfig,
    models.RunProperties,
    models.InitiatorDocument,
    models.RuntimeOverview,
    models.StatusSummary,
    models.RollupOverview,
    models.CountReference,
    models.AggregatedInfo,
    models.StepAggregatedView,
    models.StepInstance,
    models.RuntimeState,
    models.InstanceTransition,
    models.StepRetry,
    models.SignalDependencies,
    models.SignalOutputs,
    models.SignalOutput,
    models.ForeachArtifact,
    models.ForeachOverview,
    models.WhileArtifact,
    models.SubworkflowArtifact,
    models.NotebookArtifact,
    models.HttpArtifact,
    models.KubernetesArtifact,
    models.LogEvent,
    models.StatusEvent,
    models.ActionEvent,
    models.StartResponse,
    models.StepRestartResponse,
    answers.InstanceAction,
    answers.StepAction,
    answers.WorkflowAction,
    answers.WorkflowDefinition,
    answers.PropertiesSnapshot,
    answers.Metadata,
    answers.DefinitionExtras,
    answers.WorkflowOverview,
    models.WorkflowTimeline,
    models.WorkflowTimelineEvent,
    models.SignalInstance,
    answers.TagPermit,
    answers.StepBreakpoint,
    answers.BreakpointDeleted,
    answers.PausedAttempt,
)
"""In the order of the page."""


def section(model: type[Document]) -> str:
    """Return what the page says of a document."""
    same = [name for name in model.names() if name not in model.ADDED]
    rows = [
        *(f"| `{name}` | same{', not in lists' if name in model.ALONE else ''} | |" for name in same),
        *(f"| `{name}` | added | {why} |" for name, why in model.ADDED.items()),
        *(f"| `{name}` | left out | {why} |" for name, why in model.LEFT_OUT.items()),
    ]
    title = model.__name__.removesuffix("Document")
    doc = (model.__doc__ or "").replace("``", "`").splitlines()[0]
    return "\n".join([f"### {title}", "", doc, "", "| field | | |", "|---|---|---|", *rows, ""])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_page_has_every_field(model: type[Document]) -> None:
    """Same, added or left out, and why."""
    assert section(model) in PAGE.read_text("utf-8"), f"replace the section of {model.__name__} by:\n{section(model)}"
