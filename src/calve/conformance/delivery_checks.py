"""Checks of exactly-once delivery: a branch, one commit that publishes it, and a repeated delivery."""

from calve.conformance.capture_checks import catch_up, icdc_table, opened, take
from calve.conformance.scratch_table import Rows, rows_by_pyiceberg
from calve.conformance.workspace import Workspace, demand
from calve.delivery import Delivery, Published, Staging
from calve.lake import LoadedTable, Metadata, branch_head

_STREAM = "calve.proof/deliver"


def deliver(workspace: Workspace) -> str:
    """Write captured rows to a branch of a target, and publish them."""
    target = workspace.table("target")
    target.create()
    target.append(range(1, 4), "before")
    catch_up(workspace)
    workspace.events.append(range(100, 106), "delivered")
    taken = take(workspace)
    added = rows_by_pyiceberg(workspace.catalog, icdc_table(workspace, taken.tables[0]))
    staging = workspace.deliveries.stage([target.identifier], Delivery(_STREAM, taken.capture_id, "1"), "1")
    workspace.staging = staging
    target.write(added, branch=staging.branch)
    _demand_rows(target.rows(), target.truth, "before they are published")
    before = _loaded(workspace)
    (published,) = workspace.deliveries.publish(staging)
    _demand_one_commit(before, _loaded(workspace).metadata, staging, published)
    target.truth += added
    _demand_rows(target.rows(), target.truth, "after they were published")
    return f"{added.total()} rows, 1 commit"


def replay(workspace: Workspace) -> str:
    """Deliver the same capture again, by another attempt and by a late one; then commit it."""
    assert workspace.staging is not None  # noqa: S101 - this check needs the one before
    target, late, before = workspace.table("target"), workspace.staging, _loaded(workspace)
    again = workspace.deliveries.stage([target.identifier], late.delivery, "2")
    demand(again.is_delivered, "The capture was delivered, but its delivery is begun again.")
    for staging in (again, late):
        (published,) = workspace.deliveries.publish(staging)
        demand(published.is_repeated, "The capture was delivered twice.")
    demand(_loaded(workspace).metadata_location == before.metadata_location, "A repeated delivery changed the target.")
    _demand_rows(target.rows(), target.truth, "after it was delivered again")
    workspace.captures.commit(str(opened(workspace).capture_id))
    return "nothing was committed"


def _loaded(workspace: Workspace) -> LoadedTable:
    return workspace.catalog.load(workspace.table("target").name)


def _demand_one_commit(before: LoadedTable, metadata: Metadata, staging: Staging, published: Published) -> None:
    """Check that one commit moved main, recorded the delivery and removed the branch."""
    demand(branch_head(metadata) == published.snapshot_id, "The rows were published, but main is another snapshot.")
    name = staging.delivery.property_name
    demand(name in metadata.get("properties", {}), f"The rows were published without the property {name}.")
    demand(branch_head(metadata, staging.branch) is None, f"The branch {staging.branch} was published, but is left.")
    previous = metadata.get("metadata-log") or [{"metadata-file": None}]
    demand(
        previous[-1]["metadata-file"] == before.metadata_location,
        "The rows were published by more than one commit, so that a crash between them would deliver them twice.",
    )


def _demand_rows(found: Rows, truth: Rows, when: str) -> None:
    differ = (found - truth) + (truth - found)
    demand(not differ, f"{differ.total()} rows of the target are wrong {when}.")
