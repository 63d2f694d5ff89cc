"""Steps of a job template."""

import pytest
from tests.engines import Playground

from calve.definition import Vocabulary, load
from calve.definition.model import MapParam, StringParam
from calve.definition.model.params import LongParam
from calve.definition.step_types import StepTypes, load_step_types
from calve.definition.templates import JobTemplate, JobTemplates, TemplateDefinition


@pytest.fixture
def words(playground: Playground) -> Vocabulary:
    """Let an engine know a template."""
    template = TemplateDefinition(
        job_type="Nap",
        step_type="Sleep",
        version="default",
        params={
            "who": StringParam(value="template"),
            "n": LongParam(value=1),
            "nap": MapParam(value={"long": LongParam(value=1), "deep": LongParam(value=1)}),
        },
    )
    metadata = {"owner": "x", "status": "stable", "support": "none"}
    templates = JobTemplates.of([JobTemplate.model_validate({"metadata": metadata, "definition": template})])
    words = Vocabulary(StepTypes(load_step_types(), templates), templates)
    object.__setattr__(playground.tools, "vocabulary", words)
    return words


def test_a_step_has_the_params_of_its_template_below_its_own(playground: Playground, words: Vocabulary) -> None:
    """A map of the workflow's of the same name stands between the two."""
    text = "Workflow: {id: w, nap<pmap>: {deep: 2}, jobs: [{job: {id: a, type: Nap, n: 5}}]}"
    assert playground.engine.state is playground.state
    playground.engine.push(load(text, name="w.yaml", vocabulary=words).required())
    run = playground.start()
    found = {name: playground.result(run, "a", name) for name in ("who", "n", "nap")}
    assert found == {"who": "template", "n": 5, "nap": {"long": 1, "deep": 2}}
