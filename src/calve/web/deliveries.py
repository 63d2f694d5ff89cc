"""The captures and deliveries of an instance's steps, read from the document of the instance. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from calve.web.formats import number, size

Document = dict[str, Any]
_CAPTURES = frozenset({"IpCapture", "ICDC"})


def delivered(steps: Iterable[Mapping[str, Any]]) -> list[Document]:
    """Return what steps have published: the step, the table, and the snapshot if known."""
    return [
        {"step_id": step["step_id"], **one} for step in steps for one in targets_of(step) if one["fate"] == "published"
    ]


def targets_of(step: Mapping[str, Any]) -> list[Document]:
    """Return the targets of a step: the table, its ``fate``, and the snapshot if known.

    The fate is ``published``; ``held`` until the capture is committed; ``open`` while the step may still publish;
    ``unpublished`` if its branch was discarded, or the step never started; or ``unknown`` if the attempt ended without
    recording what it published.
    """
    artifacts, params = step.get("artifacts", {}), step.get("params", {})
    if published := artifacts.get("published"):
        return [{**one, "fate": "published"} for one in published]
    is_published = params.get("published", {}).get("evaluated_result")
    branch = params.get("branch", {}).get("evaluated_result") or ""
    if is_published:  # the targets had these rows already
        fate = "published"
    elif is_published is False and branch:
        fate = "held"
    elif "end_time" not in step.get("runtime_state", {}):
        fate = "open"
    else:
        is_known = "published" in artifacts or "start_time" not in step["runtime_state"]
        fate = "unpublished" if is_known else "unknown"
    written = step.get("definition", {}).get("step", {}).get("targets", ())
    return [{"table": table, "fate": fate, "branch": branch} for table in written]


def captured(document: Mapping[str, Any], path: str) -> list[Document]:
    """Return the captures that a step works on: its own, or those of the nearest capture steps before it."""
    steps = {step["step_id"]: step for step in document["steps"]}
    found: list[Document] = []
    for names in _before(document["runtime_dag"], path.partition("/")[0]):
        found += [_capture(steps[name]) for name in names if name in steps and _is_capture(steps[name])]
        if found:
            break
    return found


def _before(dag: Mapping[str, Any], step_id: str) -> Iterator[list[str]]:
    """Yield the step itself, its direct predecessors, their predecessors, and so on: one list for each distance."""
    seen, level = {step_id}, [step_id]
    while level:
        yield level
        level = [name for one in level for name in dag.get(one, {}).get("predecessors", ()) if name not in seen]
        level = list(dict.fromkeys(level))
        seen |= set(level)


def _is_capture(step: Mapping[str, Any]) -> bool:
    return step.get("type") in _CAPTURES and bool(step.get("artifacts", {}).get("capture_id"))


def _capture(step: Mapping[str, Any]) -> Document:
    outputs = {name: one.get("evaluated_result") for name, one in step.get("params", {}).items()}
    counts = (("files", number), ("records", number), ("bytes", size))
    amounts = [(name, shown(outputs[name])) for name, shown in counts if isinstance(outputs.get(name), int)]
    names = {"files": " files", "records": " rows", "bytes": ""}
    return {
        "capture_id": step["artifacts"]["capture_id"],
        "step_id": step["step_id"],
        "amount": " · ".join(f"{amount}{names[name]}" for name, amount in amounts),
    }
