"""The hierarchy of errors that calve raises.

CalveError
├── SettingsInvalid              a setting is unknown or invalid
├── RequestInvalid               the request is invalid
├── EnvironmentUnfit             a program or package that calve requires is missing
│   ├── JavaMissing
│   ├── JarsUnavailable
│   └── FolderNotWritable
├── SqlFailed                    a statement of ``calve sql`` failed
├── LakeError                    a table, its catalog or its files
│   ├── CatalogUnknown
│   ├── CatalogRefused           a catalog rejects the credentials, or a request
│   ├── NotSupportedByCatalog
│   ├── LakeUnavailable          a catalog or an object store is not available
│   ├── LakeRefused              an object store rejects the credentials, or denies access
│   ├── TableMissing
│   │   └── TableIsView
│   ├── TableEncrypted
│   ├── FormatVersionUnknown
│   ├── FilesLost
│   ├── LakeCorrupt              a metadata file of a table is damaged
│   └── SourceBusy               another writer committed to the table at the same time
├── SourceUnstable               the source of a merge returned different rows when read again
├── CaptureError                 the change cannot be captured
│   ├── ChangeUnsupported        an operation in the range was not requested, or cannot be captured exactly
│   ├── HistoryExpired
│   ├── NotAnAncestor
│   ├── TableRecreated
│   ├── SchemaChanged
│   ├── SnapshotUnknown
│   ├── RangeColumnMissing
│   ├── CheckpointExists
│   ├── CheckpointMissing
│   ├── CaptureMissing
│   ├── CaptureClosed            already committed or abandoned
│   ├── ConcurrentCapture        the consumer has another capture open
│   └── ConcurrentCommit         the checkpoint moved since the capture
├── DeliveryError                rows cannot be delivered to a target exactly once
│   ├── TargetMoved              another writer committed to it: the job must run again
│   ├── BranchLost               the branch of the job is gone: the job must run again
│   ├── TargetAhead              it contains a capture that was never committed
│   ├── DeliverySuperseded       a later capture has already been delivered
│   ├── TargetRolledBack
│   └── TargetRecreated
├── DefinitionInvalid            a workflow definition is invalid; contains every problem found
├── ParamError                   a parameter has no value, or one of the wrong type
├── ExpressionError              a SEL expression has no value
│   ├── ExpressionInvalid        a syntax error
│   ├── ExpressionFailed         the evaluation failed
│   ├── ExpressionThrew          the expression executed ``throw``
│   └── LimitReached             it exceeded a limit of time, steps or memory
├── WorkflowMissing              the workflow, version, instance or step does not exist
├── SignalMissing                the signal was never announced
├── ActionRefused                the action is not possible in this state; names those that are
├── ActionPending                the action is recorded, but did not take effect within the time limit
├── Conflict                     it was changed concurrently
├── LeaseLost                    the task now belongs to another worker
├── StepFailed                   a step failed
├── AlertNotSent                 an alert could not be sent
├── AccessError                  the caller lacks the permission
│   ├── Unauthenticated          the caller is unknown
│   ├── Forbidden                the caller is known, but not permitted to do this
│   ├── TooManyAttempts          too many requests or failed sign-ins
│   ├── TooManyStreams           one caller has too many streams open
│   ├── StreamsExhausted         all callers together have too many streams open
│   └── ProviderFailed           the identity provider is not available, or rejects calve
├── ServerError                  the response of a server is not one of calve
│   └── ServerUnreachable        no response
├── WaitedTooLong                the time to wait is over
└── StoreError                   the state database
    ├── StoreUnavailable
    ├── StoreBusy                another process schedules on this database
    ├── StoreDamaged             its file is damaged
    ├── StoreLost                its file was deleted or replaced while in use
    └── StoreSchemaUnknown       it was written by a newer calve, or long before the first release

The docstring of a class is its default message, ``code`` is for programs, ``remedy`` says what to do, and
``context`` contains the values.
"""

from typing import Any, ClassVar


class CalveError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "error"
    default_remedy: ClassVar[str] = ""
    is_passing: ClassVar[bool] = False
    """Whether the error is temporary: a retry may succeed without any change, so a step with it is retried."""

    def __init__(self, message: str | None = None, *, remedy: str | None = None, **context: Any) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.remedy = self.default_remedy if remedy is None else remedy
        self.context = context
        super().__init__(self.message)

    def as_json(self) -> dict[str, Any]:
        """Return what ``--json`` prints for this error."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy, "context": self.context}


class SettingsInvalid(CalveError):
    """A setting is unknown or invalid."""

    code = "settings_invalid"


class RequestInvalid(CalveError):
    """The request is invalid."""

    code = "request_invalid"


class EnvironmentUnfit(CalveError):
    """This machine lacks something that calve requires."""

    code = "environment_unfit"


class JavaMissing(EnvironmentUnfit):
    """Java 17 or 21 was not found."""

    code = "java_missing"


class JarsUnavailable(EnvironmentUnfit):
    """The jars for Spark could not be downloaded."""

    code = "jars_unavailable"
    is_passing = True


class FolderNotWritable(EnvironmentUnfit):
    """A folder is not writable."""

    code = "folder_not_writable"


class SqlFailed(CalveError):
    """The statement failed."""

    code = "sql_failed"


class LakeError(CalveError):
    """The lake failed."""

    code = "lake_error"


class CatalogUnknown(LakeError):
    """The catalog does not exist."""

    code = "catalog_unknown"


class CatalogRefused(LakeError):
    """A catalog rejects the credentials, or a request."""

    code = "catalog_refused"


class NotSupportedByCatalog(LakeError):
    """This kind of catalog does not support that."""

    code = "not_supported_by_catalog"


class LakeUnavailable(LakeError):
    """A catalog or an object store is not available."""

    code = "lake_unavailable"
    is_passing = True


class LakeRefused(LakeError):
    """An object store rejects the credentials, or denies access."""

    code = "lake_refused"


class TableMissing(LakeError):
    """The table does not exist."""

    code = "table_missing"


class TableIsView(TableMissing):
    """This is a view, not a table."""

    code = "table_is_view"


class TableEncrypted(LakeError):
    """The table is encrypted, so its metadata cannot be cloned."""

    code = "table_encrypted"


class FormatVersionUnknown(LakeError):
    """calve does not support the format version of the table."""

    code = "format_version_unknown"


class FilesLost(LakeError):
    """Files that the table's metadata refers to are gone."""

    code = "files_lost"


class LakeCorrupt(LakeError):
    """A metadata file of a table is damaged.

    ``path`` names the file and ``offset`` the byte in it, if they are known.
    """

    code = "lake_corrupt"
    default_remedy = "Restore the file, or make the catalog point to an earlier version of the table."

    def __init__(
        self,
        problem: str,
        *,
        path: str | None = None,
        offset: int | None = None,
        remedy: str | None = None,
        **context: Any,
    ) -> None:
        self.problem = problem
        self.path = path
        self.offset = offset
        where = {"path": path, "offset": offset}
        at = "" if offset is None else f" at byte {offset}"
        super().__init__(
            f"{path or 'A file of the table'} is damaged{at}: {problem}.",
            remedy=remedy,
            **context,
            **{key: value for key, value in where.items() if value is not None},
        )

    def in_file(self, path: str) -> "LakeCorrupt":
        """Return the error with the path of the file, unless it already has one."""
        if self.path is not None:
            return self
        return LakeCorrupt(self.problem, path=path, offset=self.offset, remedy=self.remedy)

    def in_block(self, start: int) -> "LakeCorrupt":
        """Return the error with the offset of the block, if its own offset is within the decompressed block."""
        return LakeCorrupt(
            f"{self.problem} (byte {self.offset} of the block)", path=self.path, offset=start, remedy=self.remedy
        )


class SourceBusy(LakeError):
    """Another writer committed to the table at the same time."""

    code = "source_busy"
    is_passing = True
    default_remedy = "Try again."


class SourceUnstable(CalveError):
    """The source of the merge returned different rows when it was read again."""

    code = "source_unstable"
    is_passing = True


class CaptureError(CalveError):
    """The change cannot be captured."""

    code = "capture_error"


class ChangeUnsupported(CaptureError):
    """The range contains changes that were not requested."""

    code = "change_unsupported"


class HistoryExpired(CaptureError):
    """The snapshots after the checkpoint have been expired."""

    code = "history_expired"


class NotAnAncestor(CaptureError):
    """The checkpoint is not in the history of the table's current snapshot."""

    code = "not_an_ancestor"


class TableRecreated(CaptureError):
    """The table was dropped and created again since the checkpoint."""

    code = "table_recreated"


class SchemaChanged(CaptureError):
    """The table's schema changed since the checkpoint."""

    code = "schema_changed"


class SnapshotUnknown(CaptureError):
    """The table's history has no such snapshot, tag, branch or time."""

    code = "snapshot_unknown"


class RangeColumnMissing(CaptureError):
    """The table does not have the column of the range."""

    code = "range_column_missing"


class CheckpointExists(CaptureError):
    """The consumer already has a checkpoint."""

    code = "checkpoint_exists"


class CheckpointMissing(CaptureError):
    """The consumer has no checkpoint."""

    code = "checkpoint_missing"


class CaptureMissing(CaptureError):
    """The capture does not exist."""

    code = "capture_missing"


class CaptureClosed(CaptureError):
    """The capture is already committed or abandoned."""

    code = "capture_closed"


class ConcurrentCapture(CaptureError):
    """The consumer has another capture open."""

    code = "concurrent_capture"
    is_passing = True


class ConcurrentCommit(CaptureError):
    """The consumer's checkpoint moved since the capture was taken."""

    code = "concurrent_commit"
    default_remedy = "Abandon this capture and take a new one."


class DeliveryError(CalveError):
    """The rows cannot be delivered."""

    code = "delivery_error"


class TargetMoved(DeliveryError):
    """Another writer committed to the target while the job ran."""

    code = "target_moved"
    is_passing = True
    default_remedy = "Run the job again, so that it reads what was committed."


class BranchLost(DeliveryError):
    """The branch that the job wrote to no longer exists."""

    code = "branch_lost"
    is_passing = True
    default_remedy = "Run the job again."


class TargetAhead(DeliveryError):
    """The target contains a capture that was never committed."""

    code = "target_ahead"


class DeliverySuperseded(DeliveryError):
    """A later capture has already been delivered."""

    code = "delivery_superseded"
    default_remedy = "No action is required: the newer attempt succeeded."


class TargetRolledBack(DeliveryError):
    """The last delivery is no longer in the target's history."""

    code = "target_rolled_back"


class TargetRecreated(DeliveryError):
    """The target was dropped and created again since the last delivery."""

    code = "target_recreated"


class DefinitionInvalid(CalveError):
    """The definition is invalid."""

    code = "definition_invalid"


class ParamError(CalveError):
    """A parameter has no value, or one of the wrong type."""

    code = "param_error"


class ExpressionError(CalveError):
    """The expression has no value.

    ``kind`` is what Maestro's evaluator calls the same error.
    """

    code = "expression_error"

    def __init__(self, message: str | None = None, *, kind: str, remedy: str | None = None, **context: Any) -> None:
        super().__init__(message, remedy=remedy, kind=kind, **context)
        self.kind = kind


class ExpressionInvalid(ExpressionError):
    """The expression has a syntax error."""

    code = "expression_invalid"


class ExpressionFailed(ExpressionError):
    """The evaluation of the expression failed."""

    code = "expression_failed"


class ExpressionThrew(ExpressionError):
    """The expression executed a throw."""

    code = "expression_threw"


class LimitReached(ExpressionError):
    """The expression exceeded a limit."""

    code = "limit_reached"


class WorkflowMissing(CalveError):
    """The workflow, version, instance or step does not exist."""

    code = "workflow_missing"


class SignalMissing(CalveError):
    """The signal was never announced."""

    code = "signal_missing"
    default_remedy = "List the announced signals with: calve signal list"


class ActionRefused(CalveError):
    """The action is not possible in this state."""

    code = "action_refused"


class ActionPending(CalveError):
    """The action is recorded, but has not taken effect yet."""

    code = "action_pending"
    default_remedy = "No action is required: it will take effect. The status of the step shows when."


class Conflict(CalveError):
    """It was changed by someone else at the same time."""

    code = "conflict"
    is_passing = True
    default_remedy = "Try again."


class LeaseLost(CalveError):
    """The task now belongs to another worker."""

    code = "lease_lost"


class StepFailed(CalveError):
    """The step failed."""

    code = "step_failed"


class AlertNotSent(CalveError):
    """The alert could not be sent."""

    code = "alert_not_sent"
    is_passing = True


class AccessError(CalveError):
    """Access denied."""

    code = "access_error"


class Unauthenticated(AccessError):
    """The credentials are missing or invalid."""

    code = "unauthenticated"
    default_remedy = "Sign in, or send a valid token: Authorization: Bearer calve_…"


class Forbidden(AccessError):
    """Permission denied."""

    code = "forbidden"
    default_remedy = "Ask an administrator for a role with this permission."


class TooManyAttempts(AccessError):
    """Too many attempts."""

    code = "too_many_attempts"
    is_passing = True
    default_remedy = "Try again later."


class TooManyStreams(AccessError):
    """The caller has too many streams open."""

    code = "too_many_streams"
    is_passing = True
    default_remedy = "Close some, or raise server.streams_per_caller."


class StreamsExhausted(AccessError):
    """Too many streams are open."""

    code = "streams_exhausted"
    is_passing = True
    default_remedy = "Try again later, run more server processes, or raise server.streams."


class ProviderFailed(AccessError):
    """The identity provider failed."""

    code = "provider_failed"
    is_passing = True
    default_remedy = "Try again later. If it fails again, compare access.oidc with the provider's configuration."


class ServerError(CalveError):
    """The response is not one of a calve server."""

    code = "server_error"


class ServerUnreachable(ServerError):
    """The server does not answer."""

    code = "server_unreachable"
    is_passing = True


class WaitedTooLong(CalveError):
    """It has not finished yet."""

    code = "waited_too_long"
    is_passing = True


class StoreError(CalveError):
    """The state database failed."""

    code = "store_error"
    is_passing = True


class StoreUnavailable(StoreError):
    """The state database cannot be reached."""

    code = "store_unavailable"


class StoreBusy(StoreError):
    """Another process schedules on this database."""

    code = "store_busy"


class StoreDamaged(StoreError):
    """The file of the state database is damaged."""

    code = "store_damaged"
    is_passing = False


class StoreLost(StoreError):
    """The file of the state database was deleted or replaced while it was in use."""

    code = "store_lost"
    is_passing = False


class StoreSchemaUnknown(StoreError):
    """The state database was written by a newer calve, or long before the first release."""

    code = "store_schema_unknown"
    is_passing = False


OF_THE_WORKFLOW = (
    RequestInvalid,
    DefinitionInvalid,
    ParamError,
    ExpressionError,
    WorkflowMissing,
    ActionRefused,
)
"""Errors caused by the workflow itself, so that its run fails.

After any other error, such as a database that does not respond, the task is retried.
"""
