"""Jobs of the YAML forms, and the steps that they are."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import assert_never

from calve.definition.document import Node
from calve.definition.forms import signals
from calve.definition.forms.dag import Wired, transitions
from calve.definition.forms.job_keys import KEYS, ONLY_OURS, Kind
from calve.definition.forms.keys import Sorted, as_written, snake, sort_keys, without_misspelt
from calve.definition.forms.known_types import StepTypeNames
from calve.definition.forms.loops import loop_params
from calve.definition.forms.params import params
from calve.definition.forms.shapes import as_text, entries_of, text_of, uppered
from calve.definition.problems import Problems

FLAT_TYPES = frozenset({"ICDC"})
"""Types whose config may always be written on the job itself, as it was before there were config maps."""

_AS_THEY_ARE = ("description", "tags", "timeout")
_WORDS = ("failure_mode", "tags.*.namespace", "retry_policy.backoff.type")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A job as it stands in a list: its kind, and the map that describes it."""

    kind: Kind
    item: Node
    node: Node


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the steps of one form."""

    problems: Problems
    types: StepTypeNames
    unwrap: Callable[[Node, Problems], Wrapped | None]
    """Tells the kind of an item; None for what is no job."""
    spelling: Callable[[str], str] = as_written
    is_flat: bool = False
    """Whether the fields of a config map may stand on the job itself."""

    def steps(self, jobs: Node, dag: Node | None) -> Node:
        """Return the steps of a list of jobs, each with its transition."""
        if not isinstance(jobs.value, list):
            return jobs
        wrapped = [found for item in jobs.value if (found := self.unwrap(item, self.problems)) is not None]
        read = [(job, self._read(job)) for job in wrapped]
        follows = transitions(
            [_wired(job, keys.fields) for job, keys in read if "id" in keys.fields], dag, self.problems
        )
        return jobs.made([self._written(job, keys, follows) for job, keys in read])

    def _read(self, job: Wrapped) -> Sorted:
        entries = entries_of(job.node)
        known = KEYS[job.kind] | ({"steps": "jobs"} if self.is_flat and job.kind.is_loop else {})
        config = self._config(job)
        spelling = self.spelling
        if config is not None and (self.is_flat or config.is_flat):
            known = {key: config.meant(key) for key in config.fields} | known
            spelling = snake
        keys = sort_keys(entries, known, self.problems, spelling=spelling)
        if "id" not in keys.fields and self.is_flat and "name" in keys.fields:
            keys.fields["id"] = keys.fields["name"]
        names = [*known, config.name] if config is not None else known
        return Sorted(keys.fields, without_misspelt(self._misplaced(job, keys.others), names, self.problems))

    def _misplaced(self, job: Wrapped, others: dict[str, Node]) -> dict[str, Node]:
        """Return what may be a param; report keys that belong to jobs of another kind."""
        kept: dict[str, Node] = {}
        for key, item in others.items():
            if self.spelling(key) in ONLY_OURS:
                message = f"{key} belongs to {ONLY_OURS[self.spelling(key)]}, not to a {job.kind}"
                hint = f"write {key}<map> if a param of that name is meant"
                self.problems.add(item, "misplaced_key", message, hint=hint, at_key=True)
            else:
                kept[key] = item
        return kept

    def _config(self, job: Wrapped) -> "_Config | None":
        node = next((item for key, item in entries_of(job.node).items() if self.spelling(key) == "type"), None)
        name = node.value if job.kind is Kind.STEP and node is not None else None
        resolved = self.types.resolve(name) if isinstance(name, str) else None
        config = self.types.config(resolved) if resolved is not None else None
        return _Config(*config, is_flat=resolved in FLAT_TYPES) if config is not None else None

    def _written(self, job: Wrapped, keys: Sorted, follows: dict[str, Node]) -> Node:
        if not isinstance(job.node.value, dict):
            return job.item.made({job.kind.value: job.node})
        fields = keys.fields
        step: dict[str, Node] = {key: as_text(fields[key]) for key in ("id", "name") if key in fields}
        match job.kind:
            case Kind.STEP:
                own = self._params(job, keys)
                step |= self._typed(fields)
            case Kind.TEMPLATE:
                own = self._params(job, keys)
                step |= _renamed(fields, type="sub_type", type_version="sub_type_version")
            case Kind.SUBWORKFLOW:
                own = self._params(job, keys)
                self._add_subworkflow(own, fields)
                step |= _renamed(fields, sync="sync", explicit_params="explicit_params")
            case Kind.FOREACH:
                own = self._loop(step, keys)
                step |= _renamed(fields, concurrency="concurrency", strict_ordering="strict_ordering")
            case Kind.WHILE:
                own = self._loop(step, keys)
                step |= _renamed(fields, condition="condition")
            case _:
                assert_never(job.kind)
        step |= self._common(fields)
        if (transition := follows.get(_id(fields))) is not None:
            step["transition"] = transition
        if own:
            step["params"] = job.node.made(own)
        return job.item.made({job.kind.value: uppered(job.node.made(step), *_WORDS)})

    def _common(self, fields: dict[str, Node]) -> Iterator[tuple[str, Node]]:
        for key in (*_AS_THEY_ARE, "failure_mode"):
            if key in fields:
                yield key, fields[key]
        if "signal_dependencies" in fields:
            yield "signal_dependencies", signals.dependencies(fields["signal_dependencies"], self.problems)
        if "signal_outputs" in fields:
            yield "signal_outputs", signals.outputs(fields["signal_outputs"], self.problems)

    def _typed(self, fields: dict[str, Node]) -> dict[str, Node]:
        """Return the type of a job: a step type, or the one behind a job template, whose name is kept."""
        step = _renamed(fields, type_version="sub_type_version", retry_policy="retry_policy", targets="targets")
        node = fields.get("type")
        if node is None or not isinstance(node.value, str):
            return step if node is None else {**step, "type": node}
        resolved = self.types.resolve(node.value)
        if resolved is not None:
            return {**step, "type": node.made(resolved)}
        version = fields.get("type_version")
        behind = self.types.template(node.value, None if version is None else text_of(version))
        # What is neither is reported where step types are checked.
        return {**step, "type": node} if behind is None else {**step, "type": node.made(behind), "sub_type": node}

    def _params(self, job: Wrapped, keys: Sorted) -> dict[str, Node]:
        """Return the params of a job: the keys that mean nothing else, and its ``params``."""
        entries = dict(keys.others)
        config = self._config(job)
        if config is not None:
            config.gather(entries, keys.fields, job.node, self.problems)
        name = config.name if config is not None else None
        found = params(entries, self.problems, config=name)
        if (explicit := keys.fields.get("params")) is not None:
            if not isinstance(explicit.value, dict):
                self.problems.add(explicit, "map_expected", "params is a map of names to values")
            for key, item in params(entries_of(explicit), self.problems, config=name).items():
                self._put(found, key, item)
        return found

    def _add_subworkflow(self, own: dict[str, Node], fields: dict[str, Node]) -> None:
        if "workflow_id" in fields:
            self._put(own, "subworkflow_id", _string(fields["workflow_id"]))
        elif "subworkflow_id" not in own and "id" in fields:
            own["subworkflow_id"] = _string(fields["id"])
        if "version" in fields:
            self._put(own, "subworkflow_version", _string(fields["version"]))

    def _loop(self, step: dict[str, Node], keys: Sorted) -> dict[str, Node]:
        if "jobs" in keys.fields:
            step["steps"] = self.steps(keys.fields["jobs"], keys.fields.get("dag"))
        own = params(keys.others, self.problems)
        if (over := loop_params(keys.fields, self.problems)) is not None:
            self._put(own, "loop_params", over)
        return own

    def _put(self, own: dict[str, Node], name: str, node: Node) -> None:
        if name in own:
            self.problems.add(node, "said_twice", f"the param {name} is given twice", at_key=True)
        else:
            own[name] = node


@dataclass(frozen=True, slots=True)
class _Config:
    """The config map of a step type."""

    name: str
    fields: frozenset[str]
    is_flat: bool

    def meant(self, key: str) -> str:
        """Return the field that a key means, which may have a camel's hump."""
        return snake(key) if snake(key) in self.fields else key

    def gather(self, entries: dict[str, Node], flat: dict[str, Node], job: Node, problems: Problems) -> None:
        """Put the fields that stand on the job itself into its config map."""
        outside = {key: item for key, item in flat.items() if key in self.fields and key not in KEYS[Kind.STEP]}
        if not outside:
            return
        written = entries.get(self.name)
        inside = dict(entries_of(written))
        for key, item in outside.items():
            if key in inside:
                problems.add(item, "said_twice", f"{self.name} says {key} already", at_key=True)
            inside.setdefault(key, item)
        entries[self.name] = (written or job).made(inside)


def _wired(job: Wrapped, fields: dict[str, Node]) -> Wired:
    return Wired(_id(fields), job.node, fields.get("transition"), fields.get("depends_on"))


def _id(fields: dict[str, Node]) -> str:
    return (text_of(fields["id"]) or "") if "id" in fields else ""


def _renamed(fields: dict[str, Node], **names: str) -> dict[str, Node]:
    versions = {"type_version"}
    return {
        new: as_text(fields[old]) if old in versions else fields[old] for old, new in names.items() if old in fields
    }


def _string(node: Node) -> Node:
    return node.made({"type": "STRING", "value": as_text(node)})
