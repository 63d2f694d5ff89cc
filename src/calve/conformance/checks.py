"""The checks of a proof, in their order. To add one, write its function and declare it here."""

from collections.abc import Callable
from dataclasses import dataclass

from calve.conformance import capture_checks, delivery_checks, table_checks
from calve.conformance.cleanup import clean_up
from calve.conformance.model import Skipped
from calve.conformance.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str
    proves: str
    """What it proves, in one sentence."""
    run: Callable[[Workspace], str | Skipped]
    """Carries it out, and returns what was found; raises an error if the catalog fails it."""
    needs: tuple[str, ...] = ()
    """The checks that must have passed before."""


CHECKS: tuple[Check, ...] = (
    Check("reach", "The catalog answers, with the settings and credentials of `calve.toml`.", table_checks.reach),
    Check(
        "namespace",
        "A namespace can be created.",
        table_checks.make_namespace,
        ("reach",),
    ),
    Check(
        "spark",
        "Spark starts, or is reached, and finds the same namespace through the settings that are derived for it.",
        table_checks.start_spark,
        ("namespace",),
    ),
    Check("create", "A table can be created; the catalog finds it and lists it.", table_checks.create, ("namespace",)),
    Check("append", "Appends become snapshots of their own.", table_checks.append, ("create",)),
    Check(
        "load",
        "The metadata arrives as it is stored, and the rows are those that were written.",
        table_checks.load,
        ("append",),
    ),
    Check(
        "capture",
        "A capture contains what was planned; its ICDC table is registered, and its metadata files are written.",
        capture_checks.capture,
        ("load",),
    ),
    Check(
        "read_pyiceberg",
        "PyIceberg reads exactly the captured rows.",
        capture_checks.read_by_pyiceberg,
        ("capture",),
    ),
    Check(
        "read_spark",
        "Spark reads exactly the captured rows.",
        capture_checks.read_by_spark,
        ("capture", "spark"),
    ),
    Check(
        "commit",
        "A commit moves the checkpoint, and repeating it changes nothing.",
        capture_checks.commit,
        ("capture",),
    ),
    Check(
        "changes",
        "Updated and deleted rows are captured exactly.",
        capture_checks.capture_changes,
        ("commit",),
    ),
    Check(
        "row_lineage",
        "Updated and deleted rows of a table of format v3 are captured exactly, by row lineage and deletion vectors.",
        capture_checks.capture_by_lineage,
        ("capture", "spark"),
    ),
    Check(
        "deliver",
        "Rows on a branch are not visible until one commit publishes them and records the delivery.",
        delivery_checks.deliver,
        ("commit",),
    ),
    Check("replay", "Repeating a delivery changes nothing.", delivery_checks.replay, ("deliver",)),
    Check(
        "two_writers",
        "Two writers that commit at once lose no commit.",
        table_checks.write_at_once,
        ("load",),
    ),
    Check("lease", "A lease tags the captured snapshot, and goes with the capture.", capture_checks.lease, ("commit",)),
    Check(
        "expiry",
        "Expiring snapshots keeps what a lease holds; the capture can still be read.",
        capture_checks.expire,
        ("lease",),
    ),
    Check(
        "gap",
        "A checkpoint whose history has expired is reported, and not captured as if nothing was missing.",
        capture_checks.find_gap,
        ("expiry",),
    ),
    Check(
        "drop",
        "Dropping the tables of captures keeps the files of their source.",
        capture_checks.drop,
        ("commit",),
    ),
    Check("view", "A capture can be a view.", capture_checks.view, ("commit",)),
)
"""Each needs the checks before it to have passed, as far as it names them."""
CLEANUP = Check("cleanup", "Everything that the proof made is removed again.", clean_up)
"""The last check of each proof, whatever the others found, also if they were interrupted."""
