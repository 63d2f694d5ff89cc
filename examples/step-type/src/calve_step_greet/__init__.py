"""A step type in a package of its own: ``Greet`` says hello, once or several times."""

from calve.definition.model import ParamType
from calve.definition.step_types import Field, Output, StepType
from calve.steps import Outcome, State, StepContext, fields, settled

GREET = StepType(
    "Greet",
    "Greets somebody.",
    config="greet",
    fields=(
        Field("name", (ParamType.STRING,), "Whom to greet.", required=True),
        Field("times", (ParamType.LONG,), "How often.", default=1, minimum=1, maximum=100),
    ),
    outputs=(Output("greeting", ParamType.STRING, "What was said."),),
)


class Greet:
    """Greets once per call, and asks to be called again until it has greeted often enough."""

    def execute(self, context: StepContext) -> Outcome:
        """Greet once more."""
        return settled(self._greet, context)

    def terminate(self, context: StepContext) -> None:
        """Do nothing: a greeting leaves nothing behind."""

    def _greet(self, context: StepContext) -> Outcome:
        config = fields(context, GREET)  # checked, with defaults filled in
        said = int(context.artifacts.get("said", 0)) + 1
        greeting = f"Hello, {config['name']}!"
        context.log(f"{greeting}\n")
        state = State.DONE if said >= config["times"] else State.CONTINUE
        return Outcome(state, outputs={"greeting": greeting}, artifacts={"said": said}, poll_after=0.1)
