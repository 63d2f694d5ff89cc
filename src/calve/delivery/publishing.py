"""How one target is published: decided inside its commit, by the metadata that the commit replaces."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from calve.capture.source import Source
from calve.delivery import heads
from calve.delivery.model import Published, StagedTarget
from calve.delivery.verdicts import Question, Verdict, judge
from calve.errors import BranchLost, CalveError, TargetMoved
from calve.failpoints import reach
from calve.lake import Files, LoadedTable
from calve.lake import metadata as raw

WAP_ENABLED = "write.wap.enabled"


@dataclass(slots=True)
class Publishing:
    """Decides on one target's commit, anew each time that somebody else gets in between."""

    ask: Callable[[], Question]
    """Gives the question by what the state database says now."""
    target: StagedTarget
    branch: str
    files: Files
    now_ms: int
    published: Published | None = None
    """What the last decision comes to, if its commit succeeds."""
    _written: list[str] = field(default_factory=list)

    def decide(self, metadata: raw.Metadata) -> raw.Change | None:
        """Return the change that publishes the branch; None where it has been delivered.

        Raises:
            TargetMoved: others wrote to the table, and the branch does more than append.
            BranchLost: there is no branch any more.
            DeliveryError: whatever forbids the delivery.
        """
        self.clean_up()
        question = self.ask()
        verdict = judge(question, metadata)
        if verdict.is_delivered:
            self.published = Published(self.target.name, verdict.delivered.snapshot_id, is_repeated=True)
            return None
        end = raw.head(metadata, self.branch)
        if end is None:
            raise BranchLost(
                f"The branch {self.branch} of {self.target.name}, which the job wrote to, is gone.",
                target=str(self.target.name),
                branch=self.branch,
            )
        main = raw.head(metadata)
        has_moved = main != self.target.base_snapshot_id
        if not has_moved and end != main:
            self.published = Published(self.target.name, end)
            return self._change(question, verdict, end, None)
        new = self._new_head(metadata, main, end)
        self.published = Published(self.target.name, new["snapshot-id"], is_reappended=has_moved)
        return self._change(question, verdict, new["snapshot-id"], new)

    def clean_up(self) -> None:
        """Delete what was written for a decision that came to nothing."""
        while self._written:
            with suppress(CalveError):  # an orphan of a few kilobytes
                self.files.delete(self._written.pop())

    def _change(self, question: Question, verdict: Verdict, snapshot_id: int, new: raw.Metadata | None) -> raw.Change:
        record = verdict.delivered.with_delivery(question.delivery, question.capture, snapshot_id)
        return raw.Change(
            snapshot=new,
            branches={raw.MAIN: snapshot_id},
            dropped=(self.branch,),
            properties={question.delivery.property_name: record.encode()},
        )

    def _new_head(self, metadata: raw.Metadata, main: int | None, end: int) -> raw.Metadata:
        """Write a snapshot that appends the branch's files, if any, to where ``main`` is now."""
        source = Source(LoadedTable(self.target.name, metadata, "", self.files))
        added = heads.appended_since(source, self.target.branch_snapshot_id, end)
        if added is None:
            raise TargetMoved(
                f"Others wrote to {self.target.name} while the job ran: main is at snapshot {main}, and not at "
                f"{self.target.base_snapshot_id} any more, where the job's branch comes from.",
                target=str(self.target.name),
                branch=self.branch,
            )
        summary = source.snapshots[end].get("summary", {})
        said = {key: value for key, value in summary.items() if key.startswith("calve.")} if added else {}
        head = heads.on_top(source, main, added, self.now_ms, said)
        for path, content in head.files.items():
            self._written.append(path)
            self.files.write(path, content)
        reach("delivery.written")
        return dict(head.snapshot)


@dataclass(slots=True)
class Staged:
    """Decides on the commit that gives one target a branch."""

    question: Question
    branch: str
    branch_age_ms: int
    files: Files
    now_ms: int
    target: StagedTarget | None = None
    """What the last decision comes to, if its commit succeeds."""

    def decide(self, metadata: raw.Metadata) -> raw.Change:
        """Return the change that makes the branch where ``main`` is now.

        An empty table has no ``main``, so the branch gets an empty snapshot to begin with: a branch that is missing
        later on is then known to be lost, not just unwritten.
        """
        verdict = judge(self.question, metadata)
        main = raw.head(metadata)
        new = None
        start = main
        if start is None:
            new = self._empty_head(metadata)
            start = int(new["snapshot-id"])
        name, uuid = self.question.target, metadata["table-uuid"]
        self.target = StagedTarget(name, uuid, main, start, is_delivered=verdict.is_delivered)
        enabled = str(metadata.get("properties", {}).get(WAP_ENABLED, "")).lower() == "true"
        return raw.Change(
            snapshot=new,
            branches={self.branch: start},
            branch_age_ms=self.branch_age_ms,
            properties={} if enabled else {WAP_ENABLED: "true"},
        )

    def _empty_head(self, metadata: raw.Metadata) -> raw.Metadata:
        source = Source(LoadedTable(self.question.target, metadata, "", self.files))
        head = heads.on_top(source, None, (), self.now_ms, {})
        for path, content in head.files.items():
            self.files.write(path, content)
        return dict(head.snapshot)
