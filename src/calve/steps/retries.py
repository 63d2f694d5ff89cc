"""Which failures of a step are retried: one table for all step types. Pure.

The evidence of a failure is everything known about it: SQLSTATEs, Spark's error conditions, names of exceptions, HTTP
status codes and so on. ``RULES`` is read from top to bottom; the first rule that matches any evidence decides. If none
matches, the failure counts as an error of the user and is retried as often as the step allows.

``docs/explain/retries.md`` contains the same table; a test compares the two.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from calve.engine import State


class Kind(StrEnum):
    """The kinds of evidence."""

    EXCEPTION = "exception"
    """The class of an exception, of Java or Python, without its package."""
    SQLSTATE = "SQLSTATE"
    CONDITION = "condition of Spark"
    SQLITE = "SQLite error"
    DRIVER = "DB-API class"
    """The exception class of a DB-API driver that gives no code."""
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
class RetryRule:
    """A rule: codes of one kind of evidence, and the state that they lead to."""

    state: State
    kind: Kind
    codes: tuple[str, ...]
    """Prefixes of a code; whole names of exceptions and exit codes; for messages, texts in lower case."""
    means: str
    is_conflict: bool = False
    """Another writer was faster, and nothing was committed: the same work can be done on the version of the other."""

    def fits(self, kind: Kind, found: str) -> bool:
        """Return whether a piece of evidence matches one of the codes."""
        if kind is not self.kind:
            return False
        if kind in _WORDS_IN_TEXT:
            return any(word in found.lower() for word in self.codes)
        return found in self.codes if kind in _WHOLE else found.startswith(self.codes)


_FATAL, _PLATFORM, _USER = State.FATAL_ERROR, State.PLATFORM_ERROR, State.USER_ERROR
_INFRASTRUCTURE = State.INFRASTRUCTURE_ERROR


def _rule(state: State, kind: Kind, codes: str, means: str, *, is_conflict: bool = False) -> RetryRule:
    """Return a rule; bars separate its codes."""
    return RetryRule(state, kind, tuple(code.strip() for code in codes.split("|")), means, is_conflict)


RULES = (
    _rule(
        _INFRASTRUCTURE,
        Kind.EXCEPTION,
        "ExecutorLostFailure | FetchFailedException | MetadataFetchFailedException | FetchFailed",
        "Spark lost an executor, or its results",
    ),
    _rule(
        _INFRASTRUCTURE,
        Kind.EXCEPTION,
        "CommitStateUnknownException",
        "the answer to a commit to an Iceberg table was lost; a step with targets writes to a new branch",
    ),
    _rule(
        _INFRASTRUCTURE,
        Kind.EXCEPTION,
        "CommitFailedException",
        "another writer committed to the Iceberg table first",
        is_conflict=True,
    ),
    _rule(
        _INFRASTRUCTURE,
        Kind.EXCEPTION,
        "ConnectException | ConnectTimeoutException | ConnectionClosedException | HttpHostConnectException | "
        "NoHttpResponseException | NoRouteToHostException | SocketException | SocketTimeoutException | "
        "TTransportException | UnknownHostException",
        "a connection of Spark, or of a Java program, was lost or failed",
    ),
    _rule(_INFRASTRUCTURE, Kind.EXCEPTION, "ServiceUnavailableException", "the catalog is unavailable"),
    _rule(
        _PLATFORM,
        Kind.EXCEPTION,
        "AWSServiceThrottledException | SlowDownException | ThrottlingException | TooManyRequestsException",
        "an object store or catalog asks for fewer requests",
    ),
    _rule(_PLATFORM, Kind.EXCEPTION, "OutOfMemoryError | SparkOutOfMemoryError", "Java ran out of memory"),
    _rule(_FATAL, Kind.SQLSTATE, "42", "syntax, names, types and privileges: no such table, column or function"),
    _rule(_FATAL, Kind.SQLSTATE, "07 | 0A | 46 | 56", "the database or Spark does not support this"),
    _rule(
        _FATAL,
        Kind.SQLSTATE,
        "21 | 22",
        "the data does not fit: division by zero, a cast that fails, a value out of range",
    ),
    _rule(_FATAL, Kind.SQLSTATE, "28 | 3D | 3F", "wrong user or password; no such database, catalog or schema"),
    _rule(_FATAL, Kind.SQLSTATE, "2B | 51 | 54 | F0", "other objects depend on it; a limit; a wrong configuration"),
    _rule(
        _FATAL,
        Kind.EXCEPTION,
        "Unusable",
        "the function does not exist, does not accept the arguments, or returns a type that params do not have",
    ),
    _rule(
        _FATAL,
        Kind.EXCEPTION,
        "ImportError | ModuleNotFoundError | NameError | UnboundLocalError",
        "a Python module, function or name is missing",
    ),
    _rule(_FATAL, Kind.EXCEPTION, "IndentationError | SyntaxError | TabError", "the text is not Python"),
    _rule(
        _FATAL,
        Kind.EXCEPTION,
        "ClassNotFoundException | NoClassDefFoundError | NoSuchFieldError | NoSuchMethodError | "
        "UnsupportedClassVersionError",
        "a Java class is missing, or was built for another version",
    ),
    _rule(
        _FATAL,
        Kind.EXCEPTION,
        "NoSuchKernel | PapermillMissingParameterException",
        "a notebook has no such kernel or parameter",
    ),
    _rule(
        _PLATFORM,
        Kind.MESSAGE,
        "slowdown | slow down | reduce your request rate | toomanyrequests | too many requests | rate "
        "exceeded | status code: 429 | status code: 503 | unable to process (code: 429",
        "throttling, as reported by object stores and catalogs",
    ),
    _rule(
        _PLATFORM,
        Kind.MESSAGE,
        "no space left on device",
        "a full disk",
    ),
    _rule(
        _INFRASTRUCTURE,
        Kind.MESSAGE,
        "cannot add snapshot with sequence number | requirement failed: branch | requirement failed: tag | "
        "validation failed, please retry | unable to process (code: 409 | unable to process (code: 412 | "
        "found conflicting files | found conflicting deleted files | found new conflicting delete files | "
        "cannot commit, found new | cannot commit, missing data files | missing required files to delete",
        "a concurrent write to an Iceberg table, whatever the status of the catalog's answer",
        is_conflict=True,
    ),
    _rule(
        _INFRASTRUCTURE,
        Kind.MESSAGE,
        "error occurred while processing post request | error occurred while processing get request | "
        "unable to process (code: 408 | unable to process (code: 502 | unable to process (code: 504 | "
        "metastore operation failed for | database connection failed | database connection timeout | "
        "uncheckedsqlexception: unknown failure",
        "the catalog of an Iceberg table failed, or did not answer in time",
    ),
    _rule(
        _INFRASTRUCTURE,
        Kind.MESSAGE,
        "[sqlite_busy] | [sqlite_locked] | connection refused | connection reset",
        "a locked file, a connection that broke",
    ),
    _rule(_INFRASTRUCTURE, Kind.SQLSTATE, "08 | 57P", "the connection, a shutdown of the database"),
    _rule(_INFRASTRUCTURE, Kind.SQLSTATE, "40 | 55P03 | 55006", "deadlocks, conflicts with other transactions, locks"),
    _rule(_PLATFORM, Kind.SQLSTATE, "53 | 58", "resources, input and output"),
    _rule(
        _PLATFORM,
        Kind.CONDITION,
        "INTERNAL_ERROR_BROADCAST | INTERNAL_ERROR_EXECUTOR | INTERNAL_ERROR_MEMORY | INTERNAL_ERROR_NETWORK "
        "| INTERNAL_ERROR_SHUFFLE | INTERNAL_ERROR_STORAGE",
        "the network, the memory or the disks of a Spark cluster",
    ),
    _rule(_INFRASTRUCTURE, Kind.SQLITE, "SQLITE_BUSY | SQLITE_LOCKED | SQLITE_PROTOCOL", "locks"),
    _rule(_PLATFORM, Kind.SQLITE, "SQLITE_IOERR | SQLITE_FULL | SQLITE_NOMEM", "disk and memory"),
    _rule(
        _FATAL,
        Kind.SQLITE,
        "SQLITE_ERROR | SQLITE_AUTH | SQLITE_CANTOPEN | SQLITE_CORRUPT | SQLITE_MISMATCH | SQLITE_MISUSE | "
        "SQLITE_NOTADB | SQLITE_PERM | SQLITE_RANGE | SQLITE_READONLY | SQLITE_TOOBIG",
        "syntax and names, types, and a file that cannot be opened or written",
    ),
    _rule(
        _FATAL,
        Kind.EXCEPTION,
        "AnalysisException | ParseException | NoSuchTableException | NoSuchNamespaceException",
        "Spark does not understand the query, or a name in it",
    ),
    _rule(
        _FATAL,
        Kind.EXCEPTION,
        "IllegalArgumentException | UnsupportedOperationException",
        "Spark, Iceberg or a Java program was given something that it does not accept, such as a missing snapshot",
    ),
    _rule(
        _FATAL,
        Kind.EXCEPTION,
        "PySparkAttributeError | PySparkTypeError | PySparkValueError | PySparkAssertionError",
        "PySpark was called with something that it does not accept",
    ),
    _rule(
        _FATAL,
        Kind.DRIVER,
        "DataError | NotSupportedError | ProgrammingError",
        "the statement is wrong, as reported by drivers without SQLSTATEs",
    ),
    _rule(
        _FATAL,
        Kind.MESSAGE,
        "could not find or load main class | failed to load class | path does not exist",
        "there is no such class or file",
    ),
    _rule(
        _FATAL,
        Kind.SIGN_IN,
        "authentication failed | does not exist | no password supplied | no pg_hba.conf entry | permission "
        "denied | access denied | unknown database",
        "wrong user or password; no such database",
    ),
    _rule(
        _PLATFORM,
        Kind.IMAGE,
        "toomanyrequests | too many requests | rate limit | 429",
        "the registry asks for fewer requests",
    ),
    _rule(
        _FATAL,
        Kind.IMAGE,
        "manifest unknown | not found | does not exist | access denied | access to the resource is denied | "
        "unauthorized | authentication required | invalid reference format | no matching manifest",
        "the image does not exist, or may not be pulled",
    ),
    _rule(
        _FATAL,
        Kind.GIT,
        "couldn't find remote ref | did not match any | repository not found | authentication failed | could "
        "not read username | permission denied",
        "the repository, branch or commit does not exist, or may not be read",
    ),
    _rule(
        _INFRASTRUCTURE,
        Kind.GIT,
        "could not resolve host | connection | timed out | early eof | the remote end hung up",
        "the repository cannot be reached",
    ),
    _rule(_PLATFORM, Kind.HTTP, "408 | 425 | 429", "too slow, too early, too many: not before `Retry-After`"),
    _rule(_PLATFORM, Kind.HTTP, "502 | 503 | 504", "the server is unavailable or overloaded: not before `Retry-After`"),
    _rule(_USER, Kind.HTTP, "5", "the server failed"),
    _rule(_FATAL, Kind.HTTP, "4", "the request is wrong, or not allowed"),
    _rule(_FATAL, Kind.EXIT, "126 | 127", "the program does not exist, or cannot be executed"),
    _rule(_PLATFORM, Kind.EXIT, "137 | 143", "the program was killed (SIGKILL, SIGTERM), for instance for its memory"),
)

_NAME = r"(?:[\w$]+[.$])*(?P<name>[A-Z][\w$]*(?:Error|Exception|Failure|Failed|Kernel))"
_HEAD = re.compile(rf'(?:^\(?|: |Caused by: |Exception in thread "[^"\n]*" ){_NAME}(?=[:()\s]|$)', re.MULTILINE)
"""Spark Connect puts the class of an exception that PySpark does not know in parentheses."""
_SQLSTATE = re.compile(r"\bSQLSTATE: ?(?P<code>[0-9A-Z]{5})\b")
_CONDITION = re.compile(r"(?:^|: )\[(?P<code>[A-Z][A-Z0-9_.]+)\] ", re.MULTILINE)


def state_of(evidence: Iterable[Evidence], default: State = State.USER_ERROR) -> State:
    """Return the state of a failed step: that of the first rule that matches."""
    rule = rule_of(evidence)
    return default if rule is None else rule.state


def rule_of(evidence: Iterable[Evidence]) -> RetryRule | None:
    """Return the first rule that matches; None if none does."""
    found = list(evidence)
    return next((rule for rule in RULES if any(rule.fits(kind, code) for kind, code in found)), None)


def evidence_in(text: str) -> Iterator[Evidence]:
    """Yield the evidence in a traceback, a Java stack trace or the last lines of a log."""
    for match in _HEAD.finditer(text):
        yield Kind.EXCEPTION, match["name"].rpartition("$")[2]
    for match in _SQLSTATE.finditer(text):
        yield Kind.SQLSTATE, match["code"]
    for match in _CONDITION.finditer(text):
        yield Kind.CONDITION, match["code"]
    yield Kind.MESSAGE, text
