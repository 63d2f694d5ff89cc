from .canonical_form import canonical as canonical
from .jobs import StepTypeNames as StepTypeNames
from .keys import misspelt as misspelt
from .params import typed_params as typed_params, yaml_params as yaml_params
