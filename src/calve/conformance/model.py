"""The values of a proof: how it is done, the results of its checks, and what could not be removed."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SUPPORTED = "not supported"
    """The catalog lacks the operation, and calve says so itself: not a failure."""
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Skipped:
    """The result of a check that cannot be carried out here."""

    reason: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    check: str
    proves: str
    outcome: Outcome
    seconds: float
    detail: str = ""
    """What was found; for a failure, the error; for a check that was skipped, the reason."""
    code: str = ""
    """The code of the error, or the class of an error of a library."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that the proof made and could not remove."""

    what: str
    why: str
    by_hand: str
    """How to remove it by hand."""


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """How a catalog is proved."""

    namespace: str | None = None
    """The scratch namespace; None: a new one with a random name."""
    uses_spark: bool = True
    keeps: bool = False
    """Whether everything that was made is kept."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A catalog's proof."""

    catalog: str
    namespace: str
    results: tuple[CheckResult, ...]
    leftovers: tuple[Leftover, ...] = ()
    spark_version: str | None = None
    """The version of the Spark that took part; None if there was none."""

    @property
    def has_failed(self) -> bool:
        """Whether a check failed; what the catalog does not support did not."""
        return any(result.outcome is Outcome.FAILED for result in self.results)
