"""What a definition leaves unsaid about captures, said: which capture a step works on, and when it is committed.

What is added stands in the definition from then on, so that ``calve render`` shows it, and nothing else has to guess.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from calve.definition.document import Node
from calve.definition.problems import Problems
from calve.definition.step_types import reading
from calve.definition.step_types.captures import ICDC, IP_CAPTURE, IP_COMMIT
from calve.definition.step_types.model import StepType
from calve.definition.step_types.queries import SPARK
from calve.definition.walking import all_steps, entries, entry, items, text

_CAPTURES = frozenset({IP_CAPTURE.name, ICDC.name})
_LOOPS = ("foreach", "while")


def complete(document: Node, problems: Problems) -> Node:
    """Return a canonical document in which commits and deliveries name their captures, or note which cannot."""
    workflow = entry(document, "workflow")
    types = {text(entry(step, "type")) for _, step in all_steps(workflow)}
    if workflow is None or not types & {SPARK.name, IP_COMMIT.name, ICDC.name}:
        return document
    named = {text(entry(step, "id")) for _, step in all_steps(workflow)}
    committed = {name for step in _typed(workflow, IP_COMMIT.name) if (name := _field(step, IP_COMMIT, "capture_step"))}
    completing = _Completing(problems, frozenset(filter(None, named)), frozenset(committed))
    return document.made({**entries(document), "workflow": completing.holder(workflow, _Before())})


@dataclass(frozen=True, slots=True)
class _Before:
    """What lies before a step: the captures, and the commits by the capture that each is of."""

    captures: frozenset[str] = frozenset()
    commits: frozenset[str] = frozenset()

    def with_steps(self, steps: list[Node]) -> "_Before":
        """Return what lies before, and some more steps."""
        captures = {_id(step) for step in steps if text(entry(step, "type")) in _CAPTURES}
        commits = {_field(step, IP_COMMIT, "capture_step") for step in steps if _is(step, IP_COMMIT)}
        return _Before(self.captures | captures, self.commits | commits)


@dataclass(frozen=True, slots=True)
class _Completing:
    problems: Problems
    named: frozenset[str]
    committed: frozenset[str]

    def holder(self, holder: Node, around: _Before) -> Node:
        """Return a workflow or loop with its steps completed."""
        wrappers = items(entry(holder, "steps"))
        if not wrappers:
            return holder
        steps = {_id(step): step for wrapper in wrappers for step in entries(wrapper).values()}
        before = _ancestors(steps)
        done = [
            wrapper.made(
                {
                    kind: self._step(kind, step, around.with_steps([steps[name] for name in before[_id(step)]]))
                    for kind, step in entries(wrapper).items()
                }
            )
            for wrapper in wrappers
        ]
        return holder.made({**entries(holder), "steps": self._with_commits(done)})

    def _step(self, kind: str, step: Node, before: _Before) -> Node:
        if kind in _LOOPS:
            return self.holder(step, before)
        if _is(step, IP_COMMIT):
            return self._commit(step)
        return self._delivery(step, before) if _is(step, SPARK) else step

    def _commit(self, step: Node) -> Node:
        """Return a commit with the id of the capture that its step took."""
        given = reading.fields(step, IP_COMMIT)
        if "capture" in given or "capture_step" not in given:
            return step
        named = given["capture_step"].plain()
        if not isinstance(named, str):
            message, hint = "ip_commit.capture_step is a reference", "write the id of the capture step as it is"
            self.problems.add(given["capture_step"].node, "capture_unknown", message, hint=hint)
            return step
        return _with_field(step, IP_COMMIT, "capture", f"${{{named}.capture_id}}")

    def _delivery(self, step: Node, before: _Before) -> Node:
        """Return a Spark step with its targets, and the id of the capture that it works on."""
        given = reading.fields(step, SPARK)
        into = given["merge"].inside().get("into") if "merge" in given else None
        if into is not None and into.value is not None and "targets" not in entries(step):
            step = step.made({**entries(step), "targets": [into.value]})
        if not items(entry(step, "targets")) or "capture" in given:
            return step
        open_captures = sorted(before.captures - before.commits)
        if len(open_captures) > 1:
            message = f"{_id(step)} may work on the capture of {' or '.join(open_captures)}"
            hint = f"write spark: {{capture: ${{{open_captures[0]}.capture_id}}}}"
            self.problems.add(step, "capture_ambiguous", message, hint=hint)
        if len(open_captures) != 1:
            return step
        return _with_field(step, SPARK, "capture", f"${{{open_captures[0]}.capture_id}}")

    def _with_commits(self, wrappers: list[Node]) -> list[Node]:
        """Return steps, and a commit at their end for each ICDC step that has none."""
        steps = {_id(step): step for wrapper in wrappers for step in entries(wrapper).values()}
        wanted = {name: step for name, step in steps.items() if _is(step, ICDC) and name not in self.committed}
        if not wanted:
            return wrappers
        commits = {self._free(f"{name}_commit"): name for name in wanted}
        last = [name for name, step in steps.items() if not entries(entry(step, "transition", "successors"))]
        led = [
            wrapper.made(
                {
                    kind: _leading_to(step, commits) if _id(step) in last else step
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
    """Return a step with another text in its config map, which is made if there is none."""
    config = step_type.config or ""
    params = entries(entry(step, "params"))
    given = params.get(config, step.made({"type": "MAP", "value": {}}))
    if entry(given, "value") is None:
        return step  # an expression: the run will tell
    is_plain = text(entry(given, "type")) == "STRING_MAP"
    added = {name: value if is_plain else {"type": "STRING", "value": value}}
    map_ = given.made({**entries(given), "value": {**entries(entry(given, "value")), **added}})
    return step.made({**entries(step), "params": {**params, config: map_}})


def _ancestors(steps: Mapping[str, Node]) -> dict[str, set[str]]:
    """Return for each step those that come before it."""
    sources: dict[str, set[str]] = {name: set() for name in steps}
    for name, step in steps.items():
        for target in entries(entry(step, "transition", "successors")):
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


def _id(step: Node) -> str:
    return text(entry(step, "id")) or ""


def _field(step: Node, step_type: StepType, name: str) -> str:
    """Return a text of a step's config map; empty where it is not there, or is known only later."""
    given = reading.fields(step, step_type).get(name)
    plain = given.plain() if given else None
    return plain if isinstance(plain, str) else ""
