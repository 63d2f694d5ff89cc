"""Which failures of a step fail at once, and which are tried again: one table for all step types. Pure.

What is known of a failure is evidence: SQLSTATEs, conditions of Spark, names of exceptions, statuses of HTTP and so
on. ``RULES`` is read from top to bottom, and the first rule that fits any piece of evidence decides. A failure that no
rule fits is tried again as often as the step's error retries say.

``docs/explain/retries.md`` holds the same table; a test compares the two.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from calve.engine.ports import State


class Kind(StrEnum):
    """What a piece of evidence is."""

    EXCEPTION = "exception"
    """The class of an exception, of Java or Python, without its package."""
    SQLSTATE = "SQLSTATE"
    CONDITION = "condition of Spark"
    SQLITE = "SQLite error"
    DRIVER = "DB-API class"
    """What a driver of Python's DB-API calls the failure, where it gives no code."""
    MESSAGE = "message"
    SIGN_IN = "message of a database that refuses a connection"
    IMAGE = "message of an image registry"
    GIT = "message of git"
    HTTP = "HTTP status"
    EXIT = "exit code"


_WORDS_IN_TEXT = frozenset({Kind.MESSAGE, Kind.SIGN_IN, Kind.IMAGE, Kind.GIT})
_WHOLE = frozenset({Kind.EXCEPTION, Kind.DRIVER, Kind.EXIT})
Evidence = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows from some codes."""

    state: State
    kind: Kind
    codes: tuple[str, ...]
    """How a code begins; the whole name of an exception or number of an exit; words of a message, in small letters."""
    means: str

    def fits(self, kind: Kind, found: str) -> bool:
        """Tell whether a piece of evidence is one of the codes."""
        if kind is not self.kind:
            return False
        if kind in _WORDS_IN_TEXT:
            return any(word in found.lower() for word in self.codes)
        return found in self.codes if kind in _WHOLE else found.startswith(self.codes)


_FATAL, _PLATFORM = State.FATAL_ERROR, State.PLATFORM_ERROR
RULES = (
    Rule(
        _PLATFORM,
        Kind.EXCEPTION,
        ("ExecutorLostFailure", "FetchFailedException", "MetadataFetchFailedException", "FetchFailed"),
        "Spark lost an executor, or what one had computed",
    ),
    Rule(
        _PLATFORM,
        Kind.EXCEPTION,
        ("CommitFailedException", "CommitStateUnknownException"),
        "another writer committed to the Iceberg table first",
    ),
    Rule(
        _PLATFORM,
        Kind.EXCEPTION,
        (
            "ConnectException",
            "ConnectTimeoutException",
            "HttpHostConnectException",
            "NoHttpResponseException",
            "NoRouteToHostException",
            "SocketException",
            "SocketTimeoutException",
            "UnknownHostException",
        ),
        "a connection of Spark, or of a Java program, was lost or could not be made",
    ),
    Rule(
        _PLATFORM,
        Kind.EXCEPTION,
        (
            "AWSServiceThrottledException",
            "ServiceUnavailableException",
            "SlowDownException",
            "ThrottlingException",
            "TooManyRequestsException",
        ),
        "an object store or catalog asks for fewer requests",
    ),
    Rule(_PLATFORM, Kind.EXCEPTION, ("OutOfMemoryError", "SparkOutOfMemoryError"), "Java ran out of memory"),
    Rule(_FATAL, Kind.SQLSTATE, ("42",), "syntax, names, types and privileges: no such table, column or function"),
    Rule(_FATAL, Kind.SQLSTATE, ("07", "0A", "46", "56"), "the database or Spark does not support this"),
    Rule(
        _FATAL,
        Kind.SQLSTATE,
        ("21", "22"),
        "the data does not fit: division by zero, a cast that fails, a value out of range",
    ),
    Rule(_FATAL, Kind.SQLSTATE, ("28", "3D", "3F"), "wrong user or password; no such database, catalog or schema"),
    Rule(_FATAL, Kind.SQLSTATE, ("2B", "51", "54", "F0"), "other objects depend on it; a limit; a wrong configuration"),
    Rule(
        _FATAL,
        Kind.EXCEPTION,
        ("Unusable",),
        "there is no such function, it does not take the arguments, or no param can hold what it returns",
    ),
    Rule(
        _FATAL,
        Kind.EXCEPTION,
        ("ImportError", "ModuleNotFoundError", "NameError", "UnboundLocalError"),
        "a Python module, function or name is missing",
    ),
    Rule(_FATAL, Kind.EXCEPTION, ("IndentationError", "SyntaxError", "TabError"), "the text is not Python"),
    Rule(
        _FATAL,
        Kind.EXCEPTION,
        (
            "ClassNotFoundException",
            "NoClassDefFoundError",
            "NoSuchFieldError",
            "NoSuchMethodError",
            "UnsupportedClassVersionError",
        ),
        "a Java class is missing, or was built for another version",
    ),
    Rule(
        _FATAL,
        Kind.EXCEPTION,
        ("NoSuchKernel", "PapermillMissingParameterException"),
        "a notebook has no such kernel or parameter",
    ),
    Rule(
        _PLATFORM,
        Kind.MESSAGE,
        (
            "slowdown",
            "slow down",
            "reduce your request rate",
            "toomanyrequests",
            "too many requests",
            "rate exceeded",
            "status code: 429",
            "status code: 503",
        ),
        "throttling, as object stores and catalogs word it",
    ),
    Rule(
        _PLATFORM,
        Kind.MESSAGE,
        (
            "no space left on device",
            "[sqlite_busy]",
            "[sqlite_locked]",
            "connection refused",
            "connection reset",
            "found conflicting files",
        ),
        "a full disk, a locked file, a connection that broke, a concurrent write to an Iceberg table",
    ),
    Rule(_PLATFORM, Kind.SQLSTATE, ("08",), "the connection"),
    Rule(_PLATFORM, Kind.SQLSTATE, ("40", "55P03", "55006"), "deadlocks, conflicts with other transactions, locks"),
    Rule(_PLATFORM, Kind.SQLSTATE, ("53", "57P", "58"), "resources, shutdown, input and output"),
    Rule(
        _PLATFORM,
        Kind.CONDITION,
        (
            "INTERNAL_ERROR_BROADCAST",
            "INTERNAL_ERROR_EXECUTOR",
            "INTERNAL_ERROR_MEMORY",
            "INTERNAL_ERROR_NETWORK",
            "INTERNAL_ERROR_SHUFFLE",
            "INTERNAL_ERROR_STORAGE",
        ),
        "the network, the memory or the disks of a Spark cluster",
    ),
    Rule(
        _PLATFORM,
        Kind.SQLITE,
        (
            "SQLITE_BUSY",
            "SQLITE_LOCKED",
            "SQLITE_IOERR",
            "SQLITE_FULL",
            "SQLITE_NOMEM",
            "SQLITE_PROTOCOL",
        ),
        "locks, disk and memory",
    ),
    Rule(
        _FATAL,
        Kind.SQLITE,
        (
            "SQLITE_ERROR",
            "SQLITE_AUTH",
            "SQLITE_CANTOPEN",
            "SQLITE_CORRUPT",
            "SQLITE_MISMATCH",
            "SQLITE_MISUSE",
            "SQLITE_NOTADB",
            "SQLITE_PERM",
            "SQLITE_RANGE",
            "SQLITE_READONLY",
            "SQLITE_TOOBIG",
        ),
        "syntax and names, types, and a file that cannot be opened or written",
    ),
    Rule(
        _FATAL,
        Kind.EXCEPTION,
        ("AnalysisException", "ParseException", "NoSuchTableException", "NoSuchNamespaceException"),
        "Spark does not understand the query, or a name in it",
    ),
    Rule(
        _FATAL,
        Kind.EXCEPTION,
        ("IllegalArgumentException", "UnsupportedOperationException"),
        "Spark, Iceberg or a Java program was given something that it does not take: a snapshot that is not there, say",
    ),
    Rule(
        _FATAL,
        Kind.EXCEPTION,
        ("PySparkAttributeError", "PySparkTypeError", "PySparkValueError", "PySparkAssertionError"),
        "PySpark was called with something that it does not take",
    ),
    Rule(
        _FATAL,
        Kind.DRIVER,
        ("DataError", "NotSupportedError", "ProgrammingError"),
        "the statement is wrong, as drivers without SQLSTATEs say it",
    ),
    Rule(
        _FATAL,
        Kind.MESSAGE,
        ("could not find or load main class", "failed to load class", "path does not exist"),
        "there is no such class or file",
    ),
    Rule(
        _FATAL,
        Kind.SIGN_IN,
        (
            "authentication failed",
            "does not exist",
            "no password supplied",
            "no pg_hba.conf entry",
            "permission denied",
            "access denied",
            "unknown database",
        ),
        "wrong user or password; no such database",
    ),
    Rule(
        _PLATFORM,
        Kind.IMAGE,
        ("toomanyrequests", "too many requests", "rate limit", "429"),
        "the registry asks for fewer requests",
    ),
    Rule(
        _FATAL,
        Kind.IMAGE,
        (
            "manifest unknown",
            "not found",
            "does not exist",
            "access denied",
            "access to the resource is denied",
            "unauthorized",
            "authentication required",
            "invalid reference format",
            "no matching manifest",
        ),
        "there is no such image, or it may not be fetched",
    ),
    Rule(
        _FATAL,
        Kind.GIT,
        (
            "couldn't find remote ref",
            "did not match any",
            "repository not found",
            "authentication failed",
            "could not read username",
            "permission denied",
        ),
        "there is no such repository, branch or commit, or it may not be read",
    ),
    Rule(
        _PLATFORM,
        Kind.GIT,
        ("could not resolve host", "connection", "timed out", "early eof", "the remote end hung up"),
        "the repository cannot be reached",
    ),
    Rule(_PLATFORM, Kind.HTTP, ("408", "425", "429"), "too slow, too early, too many: not before `Retry-After`"),
    Rule(_PLATFORM, Kind.HTTP, ("502", "503", "504"), "the server is away or overloaded: not before `Retry-After`"),
    Rule(State.USER_ERROR, Kind.HTTP, ("5",), "the server failed"),
    Rule(_FATAL, Kind.HTTP, ("4",), "the request is wrong, or not allowed"),
    Rule(_FATAL, Kind.EXIT, ("126", "127"), "the program is not there, or cannot be executed"),
    Rule(_PLATFORM, Kind.EXIT, ("137", "143"), "the program was killed (SIGKILL, SIGTERM), for its memory, say"),
)

_NAME = r"(?:[\w$]+[.$])*(?P<name>[A-Z][\w$]*(?:Error|Exception|Failure|Failed|Kernel))"
_HEAD = re.compile(rf'(?:^|: |Caused by: |Exception in thread "[^"\n]*" ){_NAME}(?=[:(\s]|$)', re.MULTILINE)
_SQLSTATE = re.compile(r"\bSQLSTATE: ?(?P<code>[0-9A-Z]{5})\b")
_CONDITION = re.compile(r"(?:^|: )\[(?P<code>[A-Z][A-Z0-9_.]+)\] ", re.MULTILINE)


def state_of(evidence: Iterable[Evidence], default: State = State.USER_ERROR) -> State:
    """Return how a step has failed, by the first rule that fits."""
    found = list(evidence)
    return next((rule.state for rule in RULES if any(rule.fits(kind, code) for kind, code in found)), default)


def evidence_in(text: str) -> Iterator[Evidence]:
    """Yield what a traceback, a stack of Java or the last lines of a log tell of a failure."""
    for match in _HEAD.finditer(text):
        yield Kind.EXCEPTION, match["name"].rpartition("$")[2]
    for match in _SQLSTATE.finditer(text):
        yield Kind.SQLSTATE, match["code"]
    for match in _CONDITION.finditer(text):
        yield Kind.CONDITION, match["code"]
    yield Kind.MESSAGE, text
