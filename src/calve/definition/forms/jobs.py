"""Jobs of the YAML forms, converted to steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from calve.definition.document import Node, entries as entries_of
from calve.definition.forms.dag import Wired, transitions
from calve.definition.forms.keys import (
    KEYS,
    OF_TEMPLATES,
    ONLY_OURS,
    UNCHANGED,
    StepKind,
    as_written,
    same,
    snake,
    sort_keys,
    without_misspelt,
)
from calve.definition.forms.params import yaml_params
from calve.definition.forms.triggers import signal_dependencies, signal_outputs
from calve.definition.forms.values import as_text, text_of, uppered
from calve.definition.problems import Problems, did_you_mean


class StepTypeNames(Protocol):
    """Knows the step types and the job templates by name."""

    def resolve(self, name: str) -> str | None:
        """Return the proper spelling of a step type written in any case; None if there is none."""
        ...

    def template(self, name: str, version: str | None) -> str | None:
        """Return the step type behind a job template; None if there is no such template."""
        ...

    def config(self, type_name: str) -> tuple[str, frozenset[str]] | None:
        """Return the name of the map that configures a step type, and the fields of that map."""
        ...


FLAT_TYPES = frozenset({"ICDC"})
"""Types whose config fields may always be keys of the job itself, as before there were config maps."""


@dataclass(frozen=True, slots=True)
class Config:
    """The config map of a step type."""

    name: str
    fields: frozenset[str]
    is_flat: bool
    """Whether its fields may be keys of the job itself."""

    def keys(self) -> dict[str, str]:
        """Return the keys of a job that are fields of the map: those without another meaning."""
        return {
            key: snake(key) if snake(key) in self.fields else key
            for key in self.fields
            if key not in KEYS[StepKind.STEP]
        }

    def gather(self, entries: dict[str, Node], fields: dict[str, Node], job: Node, problems: Problems) -> None:
        """Move the fields that are keys of the job itself into the map."""
        meant = set(self.keys().values())
        flat = {key: item for key, item in fields.items() if key in meant}
        if not flat:
            return
        written = entries.get(self.name, job)
        inside = dict(entries_of(entries.get(self.name)))
        for key, item in flat.items():
            if key in inside:
                problems.add(item, "said_twice", f"{key} is already given in {self.name}", at_key=True)
            inside.setdefault(key, item)
        entries[self.name] = written.made(inside)


def step_type(fields: dict[str, Node], types: StepTypeNames) -> str | None:
    """Return the step type of a job or of its job template; None if there is none."""
    node = fields.get("type")
    if node is None or not isinstance(node.value, str):
        return None
    version = fields.get("type_version")
    return types.resolve(node.value) or types.template(node.value, None if version is None else text_of(version))


def config_of(type_name: str | None, types: StepTypeNames, *, is_flat: bool) -> Config | None:
    """Return the config map of a step type; None if it has none."""
    found = None if type_name is None else types.config(type_name)
    return None if found is None else Config(*found, is_flat=is_flat or type_name in FLAT_TYPES)


_RANGE = same("from", "to", "increment")
_HINT = "write {from: 0, to: 24, increment: 1}; to is exclusive, and from and increment may be left out"


def loop_params(fields: dict[str, Node], problems: Problems) -> Node | None:
    """Return the loop params of a job as a MAP, including its ranges; None if it has none."""
    given = [fields[key] for key in ("loop_params", "ranges") if key in fields]
    if not given:
        return None
    found: dict[str, Node] = {}
    if "loop_params" in fields:
        entries = _entries(fields["loop_params"], "loop_params", problems)
        found |= yaml_params(entries, problems)
    if "ranges" in fields:
        for name, node in _ranges(fields["ranges"], problems):
            if name in found:
                problems.add(node, "said_twice", f"the loop param {name} is given twice", at_key=True)
            found.setdefault(name, node)
    return given[0].made({"type": "MAP", "value": found})


def _ranges(node: Node, problems: Problems) -> Iterator[tuple[str, Node]]:
    for name, item in _entries(node, "ranges", problems).items():
        expression = _range(name, item, problems)
        if expression is not None:
            yield name, item.made({"type": "LONG_ARRAY", "expression": expression})


def _range(name: str, node: Node, problems: Problems) -> str | None:
    match node.value:
        case dict() as entries:
            keys = sort_keys(entries, _RANGE, problems)
            for key, item in keys.others.items():
                hint = did_you_mean(key, _RANGE)
                problems.add(item, "unknown_key", f"{key} is not a key of a range", hint=hint, at_key=True)
            bounds = keys.fields
        case list() as items if 2 <= len(items) <= 3:
            bounds = dict(zip(_RANGE, items, strict=False))
        case _:
            bounds = {}
    if "to" not in bounds:
        problems.add(node, "range_malformed", f"the range {name} has no end: to is missing", hint=_HINT)
        return None
    written = {"from": "0", "increment": "1"}
    for key, bound in bounds.items():
        # A text is an expression of its own: to: day_count.
        if isinstance(bound.value, bool | float) or (text := text_of(bound)) is None:
            problems.add(bound, "range_malformed", f"{key} of the range {name} is not a whole number", hint=_HINT)
            return None
        written[key] = text
    return f"Util.intsBetween({written['from']}, {written['to']}, {written['increment']});"


def _entries(node: Node, name: str, problems: Problems) -> dict[str, Node]:
    if isinstance(node.value, dict):
        return node.value
    problems.add(node, "map_expected", f"{name} must be a map of names to values")
    return {}


_WORDS = ("failure_mode", "tags.*.namespace", "retry_policy.backoff.type")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """An item of a list of jobs: its kind, and the map that describes it."""

    kind: StepKind
    item: Node
    node: Node


@dataclass(frozen=True, slots=True)
class _Job:
    """A job with its keys sorted into fields and params."""

    kind: StepKind
    item: Node
    node: Node
    fields: dict[str, Node]
    others: dict[str, Node]
    """Its params."""
    config: Config | None

    @property
    def id(self) -> str:
        """Its id as text; empty if there is none."""
        return (text_of(self.fields["id"]) or "") if "id" in self.fields else ""

    def take(self, *names: str) -> dict[str, Node]:
        """Return some of its fields."""
        return {name: self.fields[name] for name in names if name in self.fields}


@dataclass(frozen=True, slots=True)
class JobConverter:
    """Converts the jobs of one form to steps."""

    problems: Problems
    types: StepTypeNames
    unwrap: Callable[[Node, Problems], Wrapped | None]
    """Returns an item with its kind; None if it is not a job."""
    spelling: Callable[[str], str] = as_written
    is_flat: bool = False
    """Whether config fields may be keys of any job itself, and the name of a job may be its id."""

    def steps(self, jobs: Node, dag: Node | None) -> Node:
        """Return the steps of a list of jobs, each with its transition."""
        if not isinstance(jobs.value, list):
            return jobs
        wrapped = [found for item in jobs.value if (found := self.unwrap(item, self.problems)) is not None]
        read = [self._read(job) for job in wrapped]
        wired = [
            Wired(job.id, job.node, job.fields.get("transition"), job.fields.get("depends_on"))
            for job in read
            if job.id
        ]
        follows = transitions(wired, dag, self.problems)
        return jobs.made([self._written(job, follows.get(job.id)) for job in read])

    def _read(self, job: Wrapped) -> _Job:
        entries = entries_of(job.node)
        known, spelling, config = KEYS[job.kind], self.spelling, None
        if job.kind is StepKind.STEP:
            # The type decides what the other keys mean, so it is read first.
            typed = {field: item for key, item in entries.items() if (field := known.get(self.spelling(key)))}
            config = config_of(step_type(typed, self.types), self.types, is_flat=self.is_flat)
        if config is not None and config.is_flat:
            known, spelling = config.keys() | known, snake
        keys = sort_keys(entries, known, self.problems, spelling=spelling)
        if self.is_flat and "name" in keys.fields:
            keys.fields.setdefault("id", keys.fields["name"])
        names = [*known, config.name] if config is not None else known
        others = without_misspelt(self._placed(job.kind, keys.others), names, self.problems)
        return _Job(job.kind, job.item, job.node, keys.fields, others, config)

    def _placed(self, kind: StepKind, others: dict[str, Node]) -> dict[str, Node]:
        """Return the keys that may be params; report those that belong to jobs of another kind."""
        kept: dict[str, Node] = {}
        for key, item in others.items():
            owner = ONLY_OURS.get(self.spelling(key))
            if owner is None or (kind is StepKind.TEMPLATE and key in OF_TEMPLATES):
                kept[key] = item
                continue
            hint = f"write {key}<string> if you mean a param of that name"
            self.problems.add(
                item, "misplaced_key", f"{key} is a key of a {owner}, not of a {kind}", hint=hint, at_key=True
            )
        return kept

    def _written(self, job: _Job, transition: Node | None) -> Node:
        if not isinstance(job.node.value, dict):
            return job.item.made({job.kind.value: job.node})
        step = {name: as_text(item) for name, item in job.take("id", "name").items()}
        if "signal_dependencies" in job.fields:
            step["signal_dependencies"] = signal_dependencies(job.fields["signal_dependencies"], self.problems)
        if "signal_outputs" in job.fields:
            step["signal_outputs"] = signal_outputs(job.fields["signal_outputs"], self.problems)
        if transition is not None:
            step["transition"] = transition
        step |= self._fields(job)
        own = self._loop_params(job) if job.kind.is_loop else self._params(job)
        if own:
            step["params"] = job.node.made(own)
        return job.item.made({job.kind.value: uppered(job.node.made(step), *_WORDS)})

    def _fields(self, job: _Job) -> dict[str, Node]:
        """Return the fields that only steps of this kind have."""
        found = job.take(*UNCHANGED[job.kind])
        if "type" in job.fields:
            found |= {"sub_type": job.fields["type"]} if job.kind is StepKind.TEMPLATE else self._type(job)
        if "type_version" in job.fields:
            found["sub_type_version"] = as_text(job.fields["type_version"])
        if "jobs" in job.fields:
            found["steps"] = self.steps(job.fields["jobs"], job.fields.get("dag"))
        return found

    def _type(self, job: _Job) -> dict[str, Node]:
        """Return the type of a job: a step type, or that of a job template, whose name is kept."""
        node = job.fields["type"]
        found = step_type(job.fields, self.types)
        if found is None:  # it is reported where step types are checked
            return {"type": node}
        # A version belongs to a template, which may have the name of a step type.
        is_template = self.types.resolve(str(node.value)) is None or "type_version" in job.fields
        return {"type": node.made(found), **({"sub_type": node} if is_template else {})}

    def _params(self, job: _Job) -> dict[str, Node]:
        """Return the params of a job: its unknown keys, its ``params``, and those of its kind."""
        entries = dict(job.others)
        name = None
        if job.config is not None:
            name = job.config.name
            job.config.gather(entries, job.fields, job.node, self.problems)
        found = yaml_params(entries, self.problems, config=name)
        if (explicit := job.fields.get("params")) is not None:
            if not isinstance(explicit.value, dict):
                self.problems.add(explicit, "map_expected", "params must be a map of names to values")
            for key, item in yaml_params(entries_of(explicit), self.problems, config=name).items():
                self._put(found, key, item)
        if job.kind is StepKind.SUBWORKFLOW:
            self._put_subworkflow(found, job.fields)
        return found

    def _put_subworkflow(self, found: dict[str, Node], fields: dict[str, Node]) -> None:
        """Add the id of the workflow to run: the given one, or else the id of the job."""
        if "workflow_id" in fields:
            self._put(found, "subworkflow_id", _string(fields["workflow_id"]))
        elif "id" in fields:
            found.setdefault("subworkflow_id", _string(fields["id"]))
        if "version" in fields:
            self._put(found, "subworkflow_version", _string(fields["version"]))
        elif "workflow_version" in found:  # what Maestro's Python client writes for it
            message = "workflow_version is a param of the child and does not choose its version"
            self.problems.warn(found["workflow_version"], "version_is_param", message, hint="write version")

    def _loop_params(self, job: _Job) -> dict[str, Node]:
        found = yaml_params(job.others, self.problems)
        if (over := loop_params(job.fields, self.problems)) is not None:
            self._put(found, "loop_params", over)
        return found

    def _put(self, found: dict[str, Node], name: str, node: Node) -> None:
        if name in found:
            self.problems.add(node, "said_twice", f"the param {name} is given twice", at_key=True)
        else:
            found[name] = node


def _string(node: Node) -> Node:
    return node.made({"type": "STRING", "value": as_text(node)})
