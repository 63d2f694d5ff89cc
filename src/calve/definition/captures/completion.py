"""Completes what a definition omits about captures: which capture a step processes, and when it is committed.

The additions become part of the definition, so that ``calve render`` shows them and no other code has to infer them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from calve.definition.document import Node, all_steps, entries, entry, id_of, items, successors, text
from calve.definition.model import LOOPS
from calve.definition.problems import Problems
from calve.definition.step_types import ICDC, IP_CAPTURE, IP_COMMIT, SPARK, StepType, fields

_CAPTURES = frozenset({IP_CAPTURE.name, ICDC.name})


def complete(document: Node, problems: Problems) -> Node:
    """Return a canonical document in which commits and deliveries name their captures; report those that cannot."""
    workflow = entry(document, "workflow")
    types = {text(entry(step, "type")) for _, step in all_steps(workflow)}
    if workflow is None or not types & {SPARK.name, IP_COMMIT.name, ICDC.name}:
        return document
    named = {text(entry(step, "id")) for _, step in all_steps(workflow)}
    committed = {name for step in _typed(workflow, IP_COMMIT.name) if (name := _field(step, IP_COMMIT, "capture_step"))}
    completion = _Completion(problems, frozenset(filter(None, named)), frozenset(committed))
    return document.made({**entries(document), "workflow": completion.holder(workflow, _Before())})


@dataclass(frozen=True, slots=True)
class _Before:
    """The captures before a step, and those of them that are committed before it."""

    captures: frozenset[str] = frozenset()
    commits: frozenset[str] = frozenset()

    def with_steps(self, steps: list[Node]) -> "_Before":
        """Return this with more steps."""
        captures = {id_of(step) for step in steps if text(entry(step, "type")) in _CAPTURES}
        commits = {_field(step, IP_COMMIT, "capture_step") for step in steps if _is(step, IP_COMMIT)}
        return _Before(self.captures | captures, self.commits | commits)


@dataclass(frozen=True, slots=True)
class _Completion:
    problems: Problems
    named: frozenset[str]
    committed: frozenset[str]

    def holder(self, holder: Node, around: _Before) -> Node:
        """Return a workflow or loop with its steps completed."""
        wrappers = items(entry(holder, "steps"))
        if not wrappers:
            return holder
        steps = {id_of(step): step for wrapper in wrappers for step in entries(wrapper).values()}
        before = _ancestors(steps)
        done = [
            wrapper.made(
                {
                    kind: self._step(kind, step, around.with_steps([steps[name] for name in before[id_of(step)]]))
                    for kind, step in entries(wrapper).items()
                }
            )
            for wrapper in wrappers
        ]
        return holder.made({**entries(holder), "steps": self._with_commits(done)})

    def _step(self, kind: str, step: Node, before: _Before) -> Node:
        if kind in LOOPS:
            return self.holder(step, before)
        if _is(step, IP_COMMIT):
            return self._commit(step)
        return self._delivery(step, before) if _is(step, SPARK) else step

    def _commit(self, step: Node) -> Node:
        """Return a commit with the id of the capture that its step took."""
        given = fields(step, IP_COMMIT)
        if "capture" in given or "capture_step" not in given:
            return step
        named = given["capture_step"].plain()
        if not isinstance(named, str):
            message, hint = "ip_commit.capture_step cannot be a reference", "write the id of the capture step"
            self.problems.add(given["capture_step"].node, "capture_unknown", message, hint=hint)
            return step
        return _with_field(step, IP_COMMIT, "capture", f"${{{named}.capture_id}}")

    def _delivery(self, step: Node, before: _Before) -> Node:
        """Return a Spark step with its targets, and the id of the capture that it works on."""
        given = fields(step, SPARK)
        into = given["merge"].inside().get("into") if "merge" in given else None
        if into is not None and into.value is not None and "targets" not in entries(step):
            step = step.made({**entries(step), "targets": [into.value]})
        if not items(entry(step, "targets")) or "capture" in given:
            return step
        open_captures = sorted(before.captures - before.commits)
        if len(open_captures) > 1:
            message = f"it is not clear whether {id_of(step)} works on the capture of {' or '.join(open_captures)}"
            hint = f"write spark: {{capture: ${{{open_captures[0]}.capture_id}}}}"
            self.problems.add(step, "capture_ambiguous", message, hint=hint)
        if len(open_captures) != 1:
            return step
        return _with_field(step, SPARK, "capture", f"${{{open_captures[0]}.capture_id}}")

    def _with_commits(self, wrappers: list[Node]) -> list[Node]:
        """Return steps with a commit at their end for each ICDC step that has none."""
        steps = {id_of(step): step for wrapper in wrappers for step in entries(wrapper).values()}
        wanted = {name: step for name, step in steps.items() if _is(step, ICDC) and name not in self.committed}
        if not wanted:
            return wrappers
        commits = {self._free(f"{name}_commit"): name for name in wanted}
        last = [name for name, step in steps.items() if not successors(step)]
        led = [
            wrapper.made(
                {
                    kind: _leading_to(step, commits) if id_of(step) in last else step
                    for kind, step in entries(wrapper).items()
                }
            )
            for wrapper in wrappers
        ]
        return [*led, *(wanted[name].made({"step": _commit_of(commit, name)}) for commit, name in commits.items())]

    def _free(self, name: str) -> str:
        while name in self.named:
            name = f"{name}_"
        return name


def _commit_of(commit: str, name: str) -> dict[str, Any]:
    fields = {"capture_step": name, "capture": f"${{{name}.capture_id}}"}
    value = {key: {"type": "STRING", "value": text} for key, text in fields.items()}
    return {"id": commit, "type": IP_COMMIT.name, "params": {"ip_commit": {"type": "MAP", "value": value}}}


def _leading_to(step: Node, targets: Mapping[str, str]) -> Node:
    transition = {**entries(entry(step, "transition")), "successors": dict.fromkeys(targets, "true")}
    return step.made({**entries(step), "transition": transition})


def _with_field(step: Node, step_type: StepType, name: str, value: str) -> Node:
    """Return a step with one more text in its config map, which is created if it is missing."""
    config = step_type.config or ""
    params = entries(entry(step, "params"))
    given = params.get(config, step.made({"type": "MAP", "value": {}}))
    if entry(given, "value") is None:
        return step  # an expression, known only at run time
    is_plain = text(entry(given, "type")) == "STRING_MAP"
    added = {name: value if is_plain else {"type": "STRING", "value": value}}
    map_ = given.made({**entries(given), "value": {**entries(entry(given, "value")), **added}})
    return step.made({**entries(step), "params": {**params, config: map_}})


def _ancestors(steps: Mapping[str, Node]) -> dict[str, set[str]]:
    """Return for each step those before it."""
    sources: dict[str, set[str]] = {name: set() for name in steps}
    for name, step in steps.items():
        for target in successors(step):
            sources.setdefault(target, set()).add(name)
    found = {}
    for name in steps:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            new = sources[waiting.pop()] - seen
            seen |= new
            waiting += new
        found[name] = seen
    return found


def _typed(workflow: Node, name: str) -> Iterator[Node]:
    return (step for _, step in all_steps(workflow) if text(entry(step, "type")) == name)


def _is(step: Node, step_type: StepType) -> bool:
    return text(entry(step, "type")) == step_type.name


def _field(step: Node, step_type: StepType, name: str) -> str:
    """Return a text of a step's config map; empty if it is missing or known only at run time."""
    given = fields(step, step_type).get(name)
    plain = given.plain() if given else None
    return plain if isinstance(plain, str) else ""
