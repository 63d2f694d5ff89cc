from .captures import (
    ICDC as ICDC,
    IP_CAPTURE as IP_CAPTURE,
    IP_COMMIT as IP_COMMIT,
    check_references as check_references,
    tables_of as tables_of,
)
from .control_flow import APPROVAL as APPROVAL, NO_OP as NO_OP, SLEEP as SLEEP
from .json_schema import (
    IS_PLAIN as IS_PLAIN,
    Schema as Schema,
    config_schema as config_schema,
    key_schema as key_schema,
    needs_schema as needs_schema,
    value_schema as value_schema,
)
from .markdown import reference as reference
from .programs import (
    DOCKER as DOCKER,
    HTTP as HTTP,
    JAVA as JAVA,
    KUBERNETES as KUBERNETES,
    NOTEBOOK as NOTEBOOK,
    PYTHON as PYTHON,
    SHELL as SHELL,
    parameters_files as parameters_files,
)
from .queries import SPARK as SPARK, SQL as SQL, is_sql_file as is_sql_file
from .references import (
    file_references as file_references,
    files_of as files_of,
    named_files as named_files,
    unresolved_references as unresolved_references,
)
from .registry import (
    STEP_TYPES as STEP_TYPES,
    StepTypes as StepTypes,
    Templates as Templates,
    load_step_types as load_step_types,
    stub as stub,
)
from .step_params import Given as Given, fields as fields, given as given
from .step_type import (
    DYNAMIC as DYNAMIC,
    LISTS as LISTS,
    MAPS as MAPS,
    QUANTITY as QUANTITY,
    SCALARS as SCALARS,
    Choose as Choose,
    Content as Content,
    Field as Field,
    FileField as FileField,
    Output as Output,
    Outputs as Outputs,
    StepType as StepType,
    listed as listed,
)
