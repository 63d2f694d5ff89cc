"""The map of a table's commits and partitions in the format of ``<grid-map>``, and the parts of a large map. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from calve.addresses import table_page
from calve.capture.inspection import LEGEND
from calve.web.formats import clock, number, size
from calve.web.legend import change_legend, legend_json, legend_list

Document = dict[str, Any]
COMMITS, PARTITIONS = 2_000, 500
"""Maximum number of commits and of partitions in one part of a map."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a map, as one consumer sees it."""

    table: str
    consumer: str = ""
    skip_commits: int = 0
    skip_partitions: int = 0

    @property
    def is_newest(self) -> bool:
        """Whether the part starts with the newest commits and partitions."""
        return not (self.skip_commits or self.skip_partitions)

    def address(self, below: str = "") -> str:
        """Return the address of the table's page, or of a path below it, that shows this part."""
        given = {
            "consumer": self.consumer,
            "skip_commits": self.skip_commits,
            "skip_partitions": self.skip_partitions,
        }
        query = urlencode({name: value for name, value in given.items() if value})
        return f"{table_page(self.table)}{below}" + (f"?{query}" if query else "")


def grid_of(part: Part, drawn: Document | None) -> Document:
    """Return the data of ``<grid-map>``: the letters, or the address to load them from."""
    onward = f"&{urlencode({'consumer': part.consumer})}" if part.consumer else ""
    grid = {"href": f"{table_page(part.table)}/snapshots?snapshot={{column}}{onward}"}
    if drawn is None:
        legend = change_legend(LEGEND)
        return {
            **grid,
            "src": part.address("/changes"),
            "legend": legend_json(legend),
            "key": legend_list(legend),
        }
    legend = change_legend(drawn["legend"])
    found = map_of(part, drawn)
    return {
        **grid,
        "legend": legend_json(legend),
        "key": legend_list(legend, "".join(cells for _, cells, _ in found["rows"])),
        "columns": found["columns"],
        "checkpoint": found["checkpoint"],
        "lines": ["\t".join(row) for row in found["rows"]],
    }


def map_of(part: Part, drawn: Document) -> Document:
    """Return the letters in the format of ``<grid-map>``, and which part of the map they are."""
    prefix = _prefix([one["partition"] for one in drawn["partitions"]])
    return {
        "columns": [[str(one["snapshot_id"]), _column_label(one)] for one in drawn["columns"]],
        "rows": [[_label(one["partition"], prefix), one["cells"], _amount(one)] for one in drawn["partitions"]],
        "checkpoint": _checkpoint(part, drawn),
        "unread": drawn["unread"],
        "shown": _shown(part, drawn),
        "links": _links(part, drawn),
    }


def _prefix(partitions: Sequence[str]) -> str:
    """Return the common prefix of partition names (``day=``) if they have a single field; row labels omit it."""
    fields = {one.partition("=")[0] for one in partitions if "=" in one and "/" not in one}
    return f"{fields.pop()}=" if len(fields) == 1 and all("=" in one and "/" not in one for one in partitions) else ""


def _label(partition: str, prefix: str) -> str:
    return " ".join(partition.removeprefix(prefix).split())  # tabs and line breaks are separators in the grid


def _amount(row: Mapping[str, Any]) -> str:
    return f"{number(row['rows'])} row{'' if row['rows'] == 1 else 's'} · {size(row['bytes'])}"


def _column_label(column: Mapping[str, Any]) -> str:
    if column["commits"] > 1:
        return f"{clock(column['at'])[:10]} {number(column['commits'])} commits: {column['operation']}"
    who = column["written_by"].get("attempt", "")
    return f"{clock(column['at'])} UTC {column['operation']}" + (f" by {who}" if who else "")


def _checkpoint(part: Part, drawn: Document) -> int:
    """Return the number of the column after the checkpoint; -1 if the checkpoint is outside of this part."""
    column, is_end = drawn["checkpoint_column"], drawn["checkpoint_column"] == len(drawn["columns"]) - 1
    return -1 if column is None or (part.skip_commits and is_end) else column + 1


def _commits(drawn: Document) -> int:
    return sum(one["commits"] for one in drawn["columns"])


def _shown(part: Part, drawn: Document) -> str:
    """Return which part of the map is shown, in words; empty if it is the whole map."""
    sentences = [
        _share("commits", part.skip_commits, _commits(drawn), drawn["commit_count"]),
        _share("partitions", part.skip_partitions, len(drawn["partitions"]), drawn["partition_count"]),
        f"{number(drawn['unread'])} commits are not read yet" if drawn["unread"] else "",
    ]
    return "; ".join(one for one in sentences if one)


def _share(what: str, skipped: int, shown: int, total: int) -> str:
    if shown == total:
        return ""
    if not shown:
        return f"none of the {number(total)} {what}"
    return f"{what} {number(skipped + 1)} to {number(skipped + shown)} of {number(total)}, counted from the newest"


def _links(part: Part, drawn: Document) -> list[list[str]]:
    """Return the label and the address of the parts with newer and older commits and partitions."""
    commits, partitions = part.skip_commits, part.skip_partitions
    found = []
    if commits:
        found.append(("newer commits", Part(part.table, part.consumer, max(0, commits - COMMITS))))
    if commits + _commits(drawn) < drawn["commit_count"]:
        found.append(("older commits", Part(part.table, part.consumer, commits + COMMITS)))
    if partitions:
        found.append(("newer partitions", replace(part, skip_partitions=max(0, partitions - PARTITIONS))))
    if partitions + len(drawn["partitions"]) < drawn["partition_count"]:
        found.append(("older partitions", replace(part, skip_partitions=partitions + PARTITIONS)))
    return [[text, one.address()] for text, one in found]
