"""What commands ask about captures: of the lake of this project, or of a server that ``CALVE_URL`` names."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from calve.cli.output import json_safe

if TYPE_CHECKING:
    from calve.capture import CaptureReport, Captures, Wanted
    from calve.client import Client

Document = dict[str, Any]
"""What is known of something, in JSON's types: a server gives the same as a lake."""


class Ledger(Protocol):
    """Tells what was captured and committed, and what is left; commits, abandons, and moves checkpoints by hand."""

    def plan(self, tables: Sequence[str], consumer: str, options: Mapping[str, Any]) -> "CaptureReport":
        """Return what the next capture would contain; the options are those of the command."""
        ...

    def captures(self, consumer: str | None) -> list[Document]:
        """Return captures, newest first."""
        ...

    def capture(self, capture_id: str) -> "CaptureReport":
        """Return one capture as it was reported."""
        ...

    def files(self, capture_id: str, *, check: bool) -> dict[str, list[Document]]:
        """Return the files that a capture's tables reference, by table; look whether they are there, if so asked."""
        ...

    def checkpoints(self, consumer: str | None) -> list[Document]:
        """Return where consumers stand."""
        ...

    def moves(self, consumer: str | None) -> list[Document]:
        """Return every move of a checkpoint, oldest first."""
        ...

    def lag(self, consumer: str | None) -> list[Document]:
        """Return how far consumers are behind their tables."""
        ...

    def commit(self, capture_id: str) -> "CaptureReport":
        """Move the checkpoints past a capture."""
        ...

    def abandon(self, capture_id: str) -> "CaptureReport":
        """Give a capture up."""
        ...

    def set_checkpoint(self, table: str, consumer: str, to: str, reason: str) -> Document:
        """Move a checkpoint by hand; return where it is now."""
        ...

    def reset_checkpoint(self, table: str, consumer: str, reason: str) -> None:
        """Forget a checkpoint."""
        ...


@dataclass(frozen=True, slots=True)
class LocalLedger:
    """Asks the lake and the database of the project."""

    lake: "Captures"

    def plan(self, tables: Sequence[str], consumer: str, options: Mapping[str, Any]) -> "CaptureReport":
        """Return what the next capture would contain."""
        return self.lake.plan(tables, consumer, wanted(options))

    def captures(self, consumer: str | None) -> list[Document]:
        """Return captures, newest first."""
        from calve.capture import capture_json

        return [json_safe(capture_json(stored)) for stored in self.lake.captures(consumer)]

    def capture(self, capture_id: str) -> "CaptureReport":
        """Return one capture as it was reported."""
        return self.lake.show(capture_id)

    def files(self, capture_id: str, *, check: bool) -> dict[str, list[Document]]:
        """Return the files that a capture's tables reference, by table."""
        return self.lake.files(capture_id, check=check)

    def checkpoints(self, consumer: str | None) -> list[Document]:
        """Return where consumers stand."""
        from calve.capture import checkpoint_json

        stored = self.lake.checkpoints(consumer)
        names = self.lake.named(str(one.table) for one in stored)
        return [json_safe(checkpoint_json(one, name)) for one, name in zip(stored, names, strict=True)]

    def moves(self, consumer: str | None) -> list[Document]:
        """Return every move of a checkpoint, oldest first."""
        return [json_safe(move) for move in self.lake.checkpoint_log(consumer)]

    def lag(self, consumer: str | None) -> list[Document]:
        """Return how far consumers are behind their tables."""
        return [asdict(row) for row in self.lake.lag(consumer)]

    def commit(self, capture_id: str) -> "CaptureReport":
        """Move the checkpoints past a capture."""
        return self.lake.commit(capture_id)

    def abandon(self, capture_id: str) -> "CaptureReport":
        """Give a capture up."""
        return self.lake.abandon(capture_id)

    def set_checkpoint(self, table: str, consumer: str, to: str, reason: str) -> Document:
        """Move a checkpoint by hand; return where it is now."""
        from calve.capture import checkpoint_json

        stored = self.lake.set_checkpoint(table, consumer, to, reason)
        (name,) = self.lake.named([str(stored.table)])
        where: Document = json_safe(checkpoint_json(stored, name))
        return where

    def reset_checkpoint(self, table: str, consumer: str, reason: str) -> None:
        """Forget a checkpoint."""
        self.lake.reset_checkpoint(table, consumer, reason)


@dataclass(frozen=True, slots=True)
class RemoteLedger:
    """Asks a server."""

    client: "Client"

    def plan(self, tables: Sequence[str], consumer: str, options: Mapping[str, Any]) -> "CaptureReport":
        """Return what the next capture would contain."""
        return _report(self.client.plan(tables, consumer, **options))

    def captures(self, consumer: str | None) -> list[Document]:
        """Return captures, newest first."""
        return self.client.captures(consumer=consumer)

    def capture(self, capture_id: str) -> "CaptureReport":
        """Return one capture as it was reported."""
        return _report(self.client.capture(capture_id))

    def files(self, capture_id: str, *, check: bool) -> dict[str, list[Document]]:
        """Return the files that a capture's tables reference, by table."""
        return self.client.capture_files(capture_id, is_checked=check)

    def checkpoints(self, consumer: str | None) -> list[Document]:
        """Return where consumers stand."""
        return self.client.checkpoints(consumer=consumer)

    def moves(self, consumer: str | None) -> list[Document]:
        """Return every move of a checkpoint, oldest first."""
        return self.client.checkpoint_moves(consumer=consumer)[::-1]

    def lag(self, consumer: str | None) -> list[Document]:
        """Return how far consumers are behind their tables."""
        return self.client.lag(consumer=consumer)

    def commit(self, capture_id: str) -> "CaptureReport":
        """Move the checkpoints past a capture."""
        return _report(self.client.commit_capture(capture_id))

    def abandon(self, capture_id: str) -> "CaptureReport":
        """Give a capture up."""
        return _report(self.client.abandon_capture(capture_id))

    def set_checkpoint(self, table: str, consumer: str, to: str, reason: str) -> Document:
        """Move a checkpoint by hand; return where it is now."""
        return self.client.set_checkpoint(table, consumer, to=to, reason=reason)

    def reset_checkpoint(self, table: str, consumer: str, reason: str) -> None:
        """Forget a checkpoint."""
        self.client.reset_checkpoint(table, consumer, reason=reason)


def _report(answer: Document) -> "CaptureReport":
    from calve.capture import CaptureReport

    return CaptureReport.from_json(answer)


def wanted(options: Mapping[str, Any]) -> "Wanted":
    """Return what to capture, from the options of a command."""
    from calve.capture import Limits, Mode, OnGap, OnSchemaChange, Operation, Wanted

    return Wanted(
        operations=frozenset(Operation(name) for name in options["operations"]),
        mode=Mode(options["mode"]),
        ranges=options["ranges"],
        limits=Limits(options["max_files"], options["max_bytes"]),
        start=options["start"],
        end=options["end"],
        on_gap=OnGap(options["on_gap"]),
        on_schema_change=OnSchemaChange(options["on_schema_change"]),
    )
