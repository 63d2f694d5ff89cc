"""Every error that calve raises on purpose, one tree.

CalveError
├── SettingsInvalid              a setting is unknown or makes no sense
├── RequestInvalid               the caller asked for something that makes no sense
├── EnvironmentUnfit             the machine lacks something
│   ├── JavaMissing
│   ├── JarsUnavailable
│   └── FolderNotWritable
├── SqlFailed                    a statement of ``calve sql`` failed
├── LakeError                    the table, its catalog or its files
│   ├── CatalogUnknown
│   ├── NotSupportedByCatalog
│   ├── LakeUnavailable          a catalog or an object store does not answer, or not now
│   ├── TableMissing
│   │   └── TableIsView
│   ├── TableEncrypted
│   ├── FormatVersionUnknown
│   ├── FilesLost
│   ├── LakeCorrupt              a file of a table's metadata holds what it cannot
│   └── SourceBusy               somebody else committed to the table at the same time
├── SourceUnstable               what is merged gave other rows when it was read again
├── CaptureError                 what changed cannot be told, or not like this
│   ├── ChangeUnsupported        an operation in the range was not asked for, or cannot be captured exactly
│   ├── HistoryExpired
│   ├── NotAnAncestor
│   ├── TableRecreated
│   ├── SchemaChanged
│   ├── SnapshotUnknown
│   ├── RangeColumnMissing
│   ├── CheckpointExists
│   ├── CheckpointMissing
│   ├── CaptureMissing
│   ├── CaptureClosed            committed or abandoned already
│   ├── ConcurrentCapture        the consumer has another capture open
│   └── ConcurrentCommit         the checkpoint moved since the capture
├── DeliveryError                rows cannot be delivered to a target exactly once, or not now
│   ├── TargetMoved              somebody else wrote to it: the job has to run again
│   ├── BranchLost               what the job wrote is gone: the job has to run again
│   ├── TargetAhead              it holds a capture that was never committed
│   ├── DeliverySuperseded       a later capture has been delivered
│   ├── TargetRolledBack
│   └── TargetRecreated
├── DefinitionInvalid            a workflow definition cannot be understood; holds every problem found
├── ParamError                   a parameter has no value, or none that fits
├── ExpressionError              a SEL expression gave no value
│   ├── ExpressionInvalid        it is not in the language
│   ├── ExpressionFailed         it went wrong while it ran
│   ├── ExpressionThrew          it ended in a ``throw``
│   └── LimitReached             it wanted more time, steps or memory than it may have
├── WorkflowMissing              there is no such workflow, version, instance or step
├── SignalMissing                no such signal was announced
├── ActionRefused                the instance or step is in no state for that; names the actions that are possible
├── ActionPending                the action is recorded, and has not taken effect in the time that was given
├── Conflict                     somebody else changed it at the same time
├── LeaseLost                    the task has been given to another worker
├── StepFailed                   a step's own work failed
├── AlertNotSent                 a message could not be sent on its channel
├── AccessError                  somebody asks for what is not for him
│   ├── Unauthenticated          we do not know who it is
│   ├── Forbidden                we know, and it is not allowed
│   ├── TooManyAttempts          too often, or wrong too often: wait
│   ├── TooManyStreams           one caller has too many open
│   ├── StreamsExhausted         all callers together have
│   └── ProviderFailed           who it is cannot be found out now: the provider of identities is away, or refuses calve
├── ServerError                  a server's answer cannot be understood
│   └── ServerUnreachable        no answer came
├── WaitedTooLong                what was waited for is not over yet
└── StoreError                   the database that holds all state
    ├── StoreUnavailable
    ├── StoreBusy                another process schedules on this database
    ├── StoreDamaged             its file is not whole
    ├── StoreLost                its file was deleted or replaced while a process used it
    └── StoreSchemaUnknown       it was written by a newer calve

The docstring of a class is its default message, ``code`` is for machines, ``remedy`` says what to do,
``context`` holds the values.
"""

from typing import Any, ClassVar


class CalveError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "error"
    default_remedy: ClassVar[str] = ""
    is_passing: ClassVar[bool] = False
    """Whether the same may succeed later without anybody changing anything, so that a step is tried again."""

    def __init__(self, message: str | None = None, *, remedy: str | None = None, **context: Any) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.remedy = self.default_remedy if remedy is None else remedy
        self.context = context
        super().__init__(self.message)

    def as_json(self) -> dict[str, Any]:
        """Return what ``--json`` prints for this error."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy, "context": self.context}


class SettingsInvalid(CalveError):
    """A setting is unknown or makes no sense."""

    code = "settings_invalid"


class RequestInvalid(CalveError):
    """The request makes no sense."""

    code = "request_invalid"


class EnvironmentUnfit(CalveError):
    """This machine lacks something that calve needs."""

    code = "environment_unfit"


class JavaMissing(EnvironmentUnfit):
    """Java 17 or 21 was not found."""

    code = "java_missing"


class JarsUnavailable(EnvironmentUnfit):
    """The jars for Spark could not be fetched."""

    code = "jars_unavailable"
    is_passing = True


class FolderNotWritable(EnvironmentUnfit):
    """A folder cannot be written."""

    code = "folder_not_writable"


class SqlFailed(CalveError):
    """The statement failed."""

    code = "sql_failed"


class LakeError(CalveError):
    """The lake cannot answer."""

    code = "lake_error"


class CatalogUnknown(LakeError):
    """There is no catalog of that name."""

    code = "catalog_unknown"


class NotSupportedByCatalog(LakeError):
    """This kind of catalog cannot do that."""

    code = "not_supported_by_catalog"


class LakeUnavailable(LakeError):
    """A catalog or an object store does not answer."""

    code = "lake_unavailable"
    is_passing = True


class TableMissing(LakeError):
    """There is no such table."""

    code = "table_missing"


class TableIsView(TableMissing):
    """This is a view, not a table."""

    code = "table_is_view"


class TableEncrypted(LakeError):
    """The table is encrypted, and its metadata cannot be cloned."""

    code = "table_encrypted"


class FormatVersionUnknown(LakeError):
    """The table has a format version that calve does not know."""

    code = "format_version_unknown"


class FilesLost(LakeError):
    """Files that the table's metadata names are gone."""

    code = "files_lost"


class LakeCorrupt(LakeError):
    """A file of a table's metadata is damaged.

    ``path`` names the file and ``offset`` the byte in it, as far as both are known.
    """

    code = "lake_corrupt"
    default_remedy = "Restore the file, or let the catalog point to an earlier version of the table."

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
        """Return the error with the name of the file, unless it has one."""
        if self.path is not None:
            return self
        return LakeCorrupt(self.problem, path=path, offset=self.offset, remedy=self.remedy)

    def in_block(self, start: int) -> "LakeCorrupt":
        """Return the error with the place of the block, where the offset counts what was decompressed."""
        return LakeCorrupt(
            f"{self.problem} (byte {self.offset} of the block)", path=self.path, offset=start, remedy=self.remedy
        )


class SourceBusy(LakeError):
    """Somebody else committed to the table at the same moment."""

    code = "source_busy"
    is_passing = True
    default_remedy = "Try again."


class SourceUnstable(CalveError):
    """What is merged gave other rows when it was read again."""

    code = "source_unstable"
    is_passing = True


class CaptureError(CalveError):
    """The change cannot be captured."""

    code = "capture_error"


class ChangeUnsupported(CaptureError):
    """The range holds changes that were not asked for."""

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
    """There is no such snapshot, tag, branch or time in the table's history."""

    code = "snapshot_unknown"


class RangeColumnMissing(CaptureError):
    """The table has no such column to take a range of."""

    code = "range_column_missing"


class CheckpointExists(CaptureError):
    """The consumer has a checkpoint already."""

    code = "checkpoint_exists"


class CheckpointMissing(CaptureError):
    """The consumer has no checkpoint."""

    code = "checkpoint_missing"


class CaptureMissing(CaptureError):
    """There is no such capture."""

    code = "capture_missing"


class CaptureClosed(CaptureError):
    """The capture was committed or abandoned already."""

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
    """Somebody else wrote to the target while the job ran."""

    code = "target_moved"
    is_passing = True
    default_remedy = "Run the job again: it has to see what they wrote."


class BranchLost(DeliveryError):
    """The branch that the job wrote to is gone."""

    code = "branch_lost"
    is_passing = True
    default_remedy = "Run the job again."


class TargetAhead(DeliveryError):
    """The target holds a capture that was never committed."""

    code = "target_ahead"


class DeliverySuperseded(DeliveryError):
    """A later capture has been delivered already."""

    code = "delivery_superseded"
    default_remedy = "Nothing has to be done: the newer attempt has won."


class TargetRolledBack(DeliveryError):
    """What was delivered last is not in the target's history any more."""

    code = "target_rolled_back"


class TargetRecreated(DeliveryError):
    """The target was dropped and created again since the last delivery."""

    code = "target_recreated"


class DefinitionInvalid(CalveError):
    """The definition cannot be understood."""

    code = "definition_invalid"


class ParamError(CalveError):
    """A parameter has no value, or none that fits."""

    code = "param_error"


class ExpressionError(CalveError):
    """The expression gave no value.

    ``kind`` is the name that Maestro's evaluator has for the same mistake, as its users know it.
    """

    code = "expression_error"

    def __init__(self, message: str | None = None, *, kind: str, remedy: str | None = None, **context: Any) -> None:
        super().__init__(message, remedy=remedy, kind=kind, **context)
        self.kind = kind


class ExpressionInvalid(ExpressionError):
    """The text is not an expression."""

    code = "expression_invalid"


class ExpressionFailed(ExpressionError):
    """The expression went wrong while it ran."""

    code = "expression_failed"


class ExpressionThrew(ExpressionError):
    """The expression ended in a throw."""

    code = "expression_threw"


class LimitReached(ExpressionError):
    """The expression wanted more than it may have."""

    code = "limit_reached"


class WorkflowMissing(CalveError):
    """There is no such workflow, version, instance or step."""

    code = "workflow_missing"


class SignalMissing(CalveError):
    """No such signal was announced."""

    code = "signal_missing"
    default_remedy = "calve signal list shows what was announced."


class ActionRefused(CalveError):
    """That cannot be done in this state."""

    code = "action_refused"


class ActionPending(CalveError):
    """The action is recorded, and has not taken effect yet."""

    code = "action_pending"
    default_remedy = "Nothing has to be done: it will. To see how it goes, look at the step."


class Conflict(CalveError):
    """Somebody else changed it at the same time."""

    code = "conflict"
    is_passing = True
    default_remedy = "Try again."


class LeaseLost(CalveError):
    """The task has been given to another worker."""

    code = "lease_lost"


class StepFailed(CalveError):
    """The step failed."""

    code = "step_failed"


class AlertNotSent(CalveError):
    """The message could not be sent."""

    code = "alert_not_sent"
    is_passing = True


class AccessError(CalveError):
    """Access is refused."""

    code = "access_error"


class Unauthenticated(AccessError):
    """Nobody is signed in, or what was shown is not valid."""

    code = "unauthenticated"
    default_remedy = "Sign in, or send a valid token: Authorization: Bearer calve_…"


class Forbidden(AccessError):
    """That is not allowed."""

    code = "forbidden"
    default_remedy = "Ask an administrator for a role that may do this."


class TooManyAttempts(AccessError):
    """Too many attempts."""

    code = "too_many_attempts"
    is_passing = True
    default_remedy = "Wait, and try again later."


class TooManyStreams(AccessError):
    """The caller has too many streams open."""

    code = "too_many_streams"
    is_passing = True
    default_remedy = "Close some, or raise server.streams_per_caller."


class StreamsExhausted(AccessError):
    """Too many streams are open."""

    code = "streams_exhausted"
    is_passing = True
    default_remedy = "Try again later, serve by more processes, or raise server.streams."


class ProviderFailed(AccessError):
    """The provider of identities does not answer as it should."""

    code = "provider_failed"
    is_passing = True
    default_remedy = "Try again later. If it stays so: does access.oidc say what the provider says?"


class ServerError(CalveError):
    """The server's answer cannot be understood."""

    code = "server_error"


class ServerUnreachable(ServerError):
    """The server does not answer."""

    code = "server_unreachable"
    is_passing = True


class WaitedTooLong(CalveError):
    """It is not over yet."""

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
    """The state database was written by a newer calve."""

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
"""What a workflow itself is to blame for, so that its run fails.

Of anything else that is raised while a run is moved, such as that the database does not answer, it is innocent: its
task is done again.
"""
