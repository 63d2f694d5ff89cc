from .actions import apply_action as apply_action, end_by_action as end_by_action, request_action as request_action
from .admission import start_attempt as start_attempt
from .completion import (
    finish_attempt as finish_attempt,
    record_outcome as record_outcome,
    retry_attempt as retry_attempt,
)
from .lifecycle import (
    MOMENTS as MOMENTS,
    new_attempt as new_attempt,
    next_attempt as next_attempt,
    with_message as with_message,
    with_message_before_last as with_message_before_last,
    with_status as with_status,
)
from .outcomes import (
    retry_delay as retry_delay,
    retry_reason as retry_reason,
    run_status_by_action as run_status_by_action,
    status_after as status_after,
    status_by_action as status_by_action,
    with_failure_mode as with_failure_mode,
)
from .signals import (
    DYNAMIC as DYNAMIC,
    PENDING as PENDING,
    SEEN as SEEN,
    dynamic_signal_names as dynamic_signal_names,
    send_signals as send_signals,
)
