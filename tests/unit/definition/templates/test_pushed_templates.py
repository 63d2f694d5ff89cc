"""Templates that were pushed stand beside those that are installed."""

from collections.abc import Sequence

import pytest
from tests.unit.definition.templates.makers import template, text_param

from calve.definition import load_template, vocabulary_with
from calve.definition.templates import JobTemplate, JobTemplates
from calve.errors import DefinitionInvalid

INSTALLED = template("base", params={"a": text_param("base")})


class Shelf:
    """Keeps templates in a list."""

    def __init__(self, *kept: JobTemplate) -> None:
        self.kept = list(kept)

    def templates(self, job_type: str | None = None) -> Sequence[JobTemplate]:
        """Return those of a type, or all."""
        return [one for one in self.kept if job_type in {None, one.definition.job_type}]


def text(step_type: str = "NoOp", job_type: str = "mine", more: str = "") -> str:
    """Return a template as it is sent."""
    about = "{owner: ann, status: alpha, support: us, definition: "
    return f"{about}{{job_type: {job_type}, step_type: {step_type}, version: v1{more}}}}}"


def test_a_template_is_there_as_soon_as_it_is_pushed() -> None:
    """And no longer when it is taken away."""
    shelf = Shelf()
    templates = JobTemplates.of([INSTALLED]).with_pushed(shelf)
    assert (templates.names(), templates.versions("mine")) == (("base",), ())
    shelf.kept = [template("mine"), template("mine", version="v2")]
    assert templates.names() == ("base", "mine")
    assert templates.versions("mine") == ("default", "v2")
    assert templates.get("mine", "v2") == shelf.kept[1]
    assert templates.all() == [INSTALLED, *shelf.kept]
    shelf.kept = []
    assert templates.find("mine") is None


def test_what_is_installed_comes_first() -> None:
    """A template that was pushed changes nothing that comes with a package."""
    templates = JobTemplates.of([INSTALLED]).with_pushed(Shelf(template("base", version="v2"), template("mine")))
    assert templates.versions("base") == ("default",)
    assert len(templates._templates) == 2


def test_one_more_is_known_to_the_copy_only() -> None:
    """With its other versions."""
    templates = JobTemplates.of([INSTALLED])
    more = templates.plus(template("base", version="v2")).plus(template("mine"))
    assert (more.versions("base"), more.names()) == (("default", "v2"), ("base", "mine"))
    assert templates.versions("base") == ("default",)


def test_a_template_is_read_with_all_that_it_inherits() -> None:
    """From those that are installed, or were pushed before."""
    words = vocabulary_with(Shelf(template("above")))
    found = load_template(text(more=", inherit_from: {above: default}"), name="it", vocabulary=words)
    assert found.definition.inherit_from == {"above": "default"}
    piece = "{owner: a, status: s, support: u, definition: {job_type: p, jobs: [{job: {id: a, type: above}}]}}"
    assert load_template(piece, name="it", vocabulary=words).definition.is_workflow


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{definition: {}}", "required"),
        (text("NoOpp"), "there is no step type NoOpp for jobs"),
        (text("foreach"), "there is no step type foreach for jobs"),
        (text(job_type="incremental"), "built into calve"),
        (text(more=", inherit_from: {none: v1}"), "there is no template none v1"),
        (text(more=", inherit_from: {mine: v1}"), "inherits from itself"),
    ],
)
def test_a_template_that_could_not_be_used_is_refused(given: str, message: str) -> None:
    """With what is wrong."""
    with pytest.raises(DefinitionInvalid, match=message):
        load_template(given, name="it", vocabulary=vocabulary_with(Shelf()))
