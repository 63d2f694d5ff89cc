from .carry_over import (
    REPLACED as REPLACED,
    carry_over_steps as carry_over_steps,
    check_obstacles as check_obstacles,
    inherit as inherit,
    leads_into as leads_into,
    replaced_by as replaced_by,
    supersede as supersede,
)
from .plan import (
    CAPTURES as CAPTURES,
    Fate as Fate,
    PlannedStep as PlannedStep,
    RestartPlan as RestartPlan,
    VersionChanges as VersionChanges,
    obstacles as obstacles,
    plan_steps as plan_steps,
    run_again as run_again,
)
from .requests import plan_restart as plan_restart, restart as restart
from .version_changes import (
    began_with as began_with,
    changes_since as changes_since,
    has_changed as has_changed,
    policy_inside as policy_inside,
)
