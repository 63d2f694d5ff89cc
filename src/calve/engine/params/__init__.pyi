from .evaluation import (
    condition_holds as condition_holds,
    condition_over as condition_over,
    definitions_of as definitions_of,
    evaluate_ahead as evaluate_ahead,
    evaluate_beside as evaluate_beside,
    evaluate_file_of as evaluate_file_of,
    evaluate_run as evaluate_run,
    evaluate_step as evaluate_step,
    merged_run_params as merged_run_params,
    retry_policy as retry_policy,
    run_timeout as run_timeout,
    targets_of as targets_of,
    timeout_of as timeout_of,
    written as written,
)
from .outputs import put_outputs as put_outputs, take_artifacts as take_artifacts, take_outputs as take_outputs
from .scope import (
    RunningInstance as RunningInstance,
    StepParams as StepParams,
    params_as_stored as params_as_stored,
    params_from_stored as params_from_stored,
    params_of as params_of,
    party_of as party_of,
    place_of as place_of,
    run_params as run_params,
)
