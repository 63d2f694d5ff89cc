from .artifacts import (
    CountReference as CountReference,
    ForeachArtifact as ForeachArtifact,
    ForeachOverview as ForeachOverview,
    HttpArtifact as HttpArtifact,
    KubernetesArtifact as KubernetesArtifact,
    NotebookArtifact as NotebookArtifact,
    RollupOverview as RollupOverview,
    RuntimeOverview as RuntimeOverview,
    StatusSummary as StatusSummary,
    SubworkflowArtifact as SubworkflowArtifact,
    WhileArtifact as WhileArtifact,
)
from .document import (
    API as API,
    ActionEvent as ActionEvent,
    Document as Document,
    Json as Json,
    LogEvent as LogEvent,
    StatusEvent as StatusEvent,
    User as User,
    WorkflowTimeline as WorkflowTimeline,
    WorkflowTimelineEvent as WorkflowTimelineEvent,
)
from .documents import (
    approval_json as approval_json,
    attempt_json as attempt_json,
    instance_json as instance_json,
    overview_json as overview_json,
    restart_plan_json as restart_plan_json,
    run_json as run_json,
    started_json as started_json,
)
from .instances import (
    AggregatedInfo as AggregatedInfo,
    InitiatorDocument as InitiatorDocument,
    PlannedStepDocument as PlannedStepDocument,
    RestartPlanDocument as RestartPlanDocument,
    RunConfig as RunConfig,
    RunProperties as RunProperties,
    SignalInstance as SignalInstance,
    StartResponse as StartResponse,
    StepAggregatedView as StepAggregatedView,
    StepRestartResponse as StepRestartResponse,
    WorkflowInstance as WorkflowInstance,
)
from .live_steps import (
    LocatedStep as LocatedStep,
    PendingApproval as PendingApproval,
    StepFailure as StepFailure,
    StepProgress as StepProgress,
    StepWait as StepWait,
    Waiting as Waiting,
)
from .overview import (
    Failure as Failure,
    Iterations as Iterations,
    Overview as Overview,
    StepOverview as StepOverview,
    failures as failures,
    last_message as last_message,
    overview_of as overview_of,
)
from .repeats import repeated_work as repeated_work
from .sources import (
    MayRead as MayRead,
    reads_all as reads_all,
    run_source as run_source,
    step_source as step_source,
)
from .steps import (
    InstanceTransition as InstanceTransition,
    RestartConfig as RestartConfig,
    RunReference as RunReference,
    RuntimeState as RuntimeState,
    SignalDependencies as SignalDependencies,
    SignalOutput as SignalOutput,
    SignalOutputs as SignalOutputs,
    StepInstance as StepInstance,
    StepNotCreated as StepNotCreated,
    StepRetry as StepRetry,
    flat as flat,
    runtime_state as runtime_state,
)
from .waits import (
    Approval as Approval,
    Live as Live,
    Progress as Progress,
    Wait as Wait,
    WaitReason as WaitReason,
    approvals_of as approvals_of,
)
