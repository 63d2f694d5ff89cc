"""Steps that run other steps or workflows: subworkflow, foreach, while, template."""

from calve.definition.model.params import ParamType
from calve.definition.step_types.model import LISTS, MAPS, SCALARS, TEXT, WHOLE, Field, Output, StepType

_LOOP_INDEX = Output("loop_index", ParamType.LONG, "The number of the iteration, from 0; for the steps inside.")

SUBWORKFLOW = StepType(
    "subworkflow",
    "Runs another workflow.",
    params=(
        Field("subworkflow_id", TEXT, "The workflow to run.", required=True),
        Field("subworkflow_version", (*TEXT, *WHOLE), "active, latest, default, or a number.", default="active"),
    ),
    is_leaf=False,
)
FOREACH = StepType(
    "foreach",
    "Runs its steps once for every combination of its loop params; the first varies fastest.",
    params=(Field("loop_params", MAPS, "The lists to go through, by name.", required=True, values=LISTS),),
    outputs=(_LOOP_INDEX,),
    is_leaf=False,
)
WHILE = StepType(
    "while",
    "Runs its steps again while its condition holds.",
    params=(
        Field(
            "loop_params",
            MAPS,
            "The first values, by name; a step's param of that name gives the next.",
            required=True,
            values=SCALARS,
        ),
    ),
    outputs=(_LOOP_INDEX,),
    is_leaf=False,
)
TEMPLATE = StepType("template", "Stands for the steps of a workflow template.", is_leaf=False)
