"""Check what steps say of each other: a commit names the capture that it commits."""

from collections.abc import Iterable

from calve.definition.document import Node
from calve.definition.problems import Problems, did_you_mean
from calve.definition.step_types import reading
from calve.definition.step_types.captures import ICDC, IP_CAPTURE, IP_COMMIT
from calve.definition.walking import entry, text


def check_references(steps: Iterable[Node], problems: Problems) -> None:
    """Note commits that name no capture step of the workflow, and captures that nothing commits.

    Args:
        steps: every step of a workflow in canonical form, without wrappers, those inside loops too (``all_steps``).
        problems: where to note them.
    """
    typed: dict[str, dict[str, Node]] = {IP_CAPTURE.name: {}, ICDC.name: {}, IP_COMMIT.name: {}}
    others = set()
    for step in steps:
        step_id, name = text(entry(step, "id")) or "", text(entry(step, "type"))
        if name in typed:
            typed[name][step_id] = step
        else:
            others.add(step_id)
    captures = typed[IP_CAPTURE.name] | typed[ICDC.name]
    committed = set()
    for step in typed[IP_COMMIT.name].values():
        given = reading.fields(step, IP_COMMIT).get("capture_step")
        if given is None:
            continue
        named = given.plain()
        committed.add(named)
        if isinstance(named, str) and named not in captures:
            what = f"{named} is not an IpCapture step" if named in others else f"there is no step {named}"
            hint = did_you_mean(named, captures) or "add an IpCapture step"
            problems.add(given.node, "unknown_capture_step", f"ip_commit.capture_step: {what}", hint=hint)
    if not all(isinstance(name, str) for name in committed):
        return  # it will be told only when the step runs
    for step_id, step in typed[IP_CAPTURE.name].items():
        if step_id not in committed:
            message = f"nothing commits what {step_id} captures: every run captures it again"
            hint = f"add a step of type IpCommit with ip_commit: {{capture_step: {step_id}}}"
            problems.warn(step, "capture_uncommitted", message, hint=hint)
