"""A capture that was given up: what took its place, and what to do."""

from datetime import UTC, datetime

from calve.capture import Artifacts, Status, StoredCapture, Superseded, superseded_by

AT = datetime(2026, 3, 1, tzinfo=UTC)


def capture(number: int, status: Status = Status.OPEN, key: str | None = None) -> StoredCapture:
    """Return a capture of a consumer."""
    return StoredCapture(f"c{number}", "w/capture", number, key, status, AT, None, (), Artifacts())


def test_the_first_one_since_that_counts_took_its_place() -> None:
    """Whatever was given up in between, and whatever came before."""
    given_up = capture(2, Status.ABANDONED, "w/1/capture")
    others = [
        capture(5),
        capture(4, Status.COMMITTED, "w/3/capture"),
        capture(3, Status.ABANDONED),
        given_up,
        capture(1),
    ]
    assert superseded_by(given_up, others) == Superseded("c2", "w/1/capture", "c4", "w/3/capture", is_committed=True)
    assert superseded_by(given_up, others[2:]) == Superseded("c2", "w/1/capture")


def test_what_to_do_depends_on_who_took_them() -> None:
    """A step of an instance, of an iteration in it, or someone by hand."""
    found = Superseded("c1", "w/1/loop[3]/capture", "c2", "other")
    assert found.message == (
        "capture c1 was abandoned for the newer capture c2, taken by other, which contains the same changes."
    )
    assert "calve show c2" in found.remedy()
    assert found.remedy().endswith("calve restart w 1 --step loop/3/capture")
    assert Superseded("c1", None).remedy() == "Take a new capture."
    assert "calve status w 2." in Superseded("c1", None, "c2", "w/2/capture").remedy()
