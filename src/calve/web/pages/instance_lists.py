"""Lists of instances with their filters: of all workflows, and of one."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Query
from pydantic import BeforeValidator, Field

from calve.api import Call, Paged
from calve.engine import RunStatus
from calve.errors import RequestInvalid
from calve.operations import READ_SOMEWHERE, Operations, Page as Part
from calve.web.page import Page, Pages

pages = Pages("instance lists")
_EVERY = 2.0

Document = dict[str, Any]
_ENDED_BADLY = (RunStatus.FAILED, RunStatus.TIMED_OUT)
_ACTIVE = tuple(status for status in RunStatus if not status.is_terminal)
GROUPS = ((_ENDED_BADLY, "failed or timed out"), (_ACTIVE, "active"))
"""Groups of statuses that the status filter offers."""
_Text = Annotated[str, Query(max_length=128)]
_Time = Annotated[str, Query(max_length=40)]
_Version = Annotated[Annotated[int, Field(ge=1, lt=2**31)] | None, BeforeValidator(lambda text: text or None), Query()]
"""An empty field of a form is None."""


@dataclass(frozen=True, slots=True)
class InstanceFilters:
    """The filters in the address of a list: all that the API has."""

    status: str = ""
    """One status, or several separated by commas."""
    since: str = ""
    until: str = ""
    tag: str = ""
    initiator: str = ""
    version: int | None = None
    param: tuple[str, ...] = ()
    """Each is NAME=VALUE."""

    @property
    def statuses(self) -> list[RunStatus]:
        """The given statuses.

        Raises:
            RequestInvalid: one of them is unknown.
        """
        given = [one for one in self.status.split(",") if one]
        if unknown := next((one for one in given if one not in list(RunStatus)), None):
            raise RequestInvalid(f"{unknown!r} is not a status.", remedy=f"The statuses are {', '.join(RunStatus)}.")
        return [RunStatus(one) for one in given]

    def query(self) -> dict[str, Any]:
        """Return the filters that are set, by their names in the address."""
        names = {"since": "from", "until": "to"}
        given = {**asdict(self), "status": ",".join(self.statuses)}
        return {names.get(name, name): value for name, value in given.items() if value not in {None, "", ()}}

    def listed(self, operations: Operations, page: Part, workflow_id: str | None = None) -> Document:
        """Return a page of the instances that match the filters."""
        return operations.list_instances(
            page=page,
            workflow_id=workflow_id,
            statuses=self.statuses or None,
            since=self.since or None,
            until=self.until or None,
            tag=self.tag or None,
            initiator=self.initiator or None,
            version=self.version,
            param=list(self.param) or None,
        )

    def choices(self) -> Iterator[tuple[str, str]]:
        """Yield the value and the label of each option of the status filter."""
        for statuses, label in GROUPS:
            yield ",".join(statuses), label
        for one in RunStatus:
            yield one.value, one.value.replace("_", " ").lower()


def _filters(
    status: Annotated[list[str], Query(max_length=20)] = [],  # noqa: B006 - FastAPI copies it
    since: Annotated[str, Query(alias="from", max_length=40)] = "",
    until: Annotated[str, Query(alias="to", max_length=40)] = "",
    tag: _Text = "",
    initiator: _Text = "",
    version: _Version = None,
    param: Annotated[list[str], Query(max_length=10)] = [],  # noqa: B006 - the same
) -> InstanceFilters:
    params = tuple(one for one in param if one.strip())
    return InstanceFilters(",".join(status), since, until, tag, initiator, version, params)


Filtered = Annotated[InstanceFilters, Depends(_filters)]


@pages.get("/instances", "all_instances_page", READ_SOMEWHERE, live=True, every=_EVERY)
def instances(call: Call, page: Paged, filters: Filtered, workflow_id: _Text = "") -> Page:
    """List the instances of all workflows, newest first."""
    name = workflow_id.strip()
    document = filters.listed(Operations(call), page, name or None)
    query = {"workflow_id": name, **filters.query()} if name else filters.query()
    values = {
        "filters": filters,
        "workflow_id": name,
        "is_filtered": bool(query),
        "list_address": f"/instances?{urlencode(query, doseq=True)}",
    }
    return Page("instance_lists/list.html", "Instances", document, values, here="more", regions=("instances",))
