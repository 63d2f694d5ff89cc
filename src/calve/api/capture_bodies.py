"""What requests about captures hold."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from calve.capture import Limits, Mode, OnGap, OnSchemaChange, Operation, Wanted

Table = Annotated[str, Field(min_length=1, max_length=512, examples=["db.events"])]
Consumer = Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["demo.daily"])]
Place = Annotated[str, Field(min_length=1, max_length=128)]
_Amount = Annotated[int, Field(ge=1, lt=2**63)]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlanRequest(_Body):
    """What is to be captured."""

    tables: Annotated[list[Table], Field(min_length=1, max_length=100)]
    consumer: Consumer
    operations: list[Operation] = [Operation.APPEND]
    mode: Mode = Mode.TABLE
    ranges: list[Annotated[str, Field(min_length=1, max_length=256)]] = []
    max_files: _Amount | None = None
    max_bytes: _Amount | None = None
    start: Place | None = None
    """Where to begin without a checkpoint: latest, a snapshot, a tag, a time; by default with everything."""
    end: Place | None = None
    on_gap: OnGap = OnGap.FAIL
    on_schema_change: OnSchemaChange = OnSchemaChange.EVOLVE

    def wanted(self) -> Wanted:
        """Return what captures are asked for."""
        return Wanted(
            operations=frozenset(self.operations),
            mode=self.mode,
            ranges=tuple(self.ranges),
            limits=Limits(self.max_files, self.max_bytes),
            start=self.start,
            end=self.end,
            on_gap=self.on_gap,
            on_schema_change=self.on_schema_change,
        )


class CaptureRequest(PlanRequest):
    """A capture."""

    key: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """Names the request: repeated, it gets the same capture back."""
    lease: bool = False
    """Tag the captured snapshots until the commit, so that expiry keeps their files."""
    supersede: bool = False
    """Abandon the capture that the consumer has open."""

    def options(self) -> dict[str, Any]:
        """Return how it is captured."""
        return {"key": self.key, "lease": self.lease, "supersede": self.supersede}


class CheckpointRequest(_Body):
    """A move of a checkpoint by hand."""

    table: Table
    consumer: Consumer
    to: Place
    """latest, a snapshot, a tag, a branch or a time: up to there counts as done."""
    reason: Annotated[str, Field(min_length=1, max_length=1_000)]
