"""Jobs of the YAML forms, and the steps that they are."""

from collections.abc import Callable
from dataclasses import dataclass

from calve.definition.document import Node
from calve.definition.forms import signals
from calve.definition.forms.configs import Config, config_of, step_type
from calve.definition.forms.dag import Wired, transitions
from calve.definition.forms.job_keys import AS_THEY_ARE, KEYS, OF_TEMPLATES, ONLY_OURS, Kind
from calve.definition.forms.keys import as_written, snake, sort_keys, without_misspelt
from calve.definition.forms.known_types import StepTypeNames
from calve.definition.forms.loops import loop_params
from calve.definition.forms.params import params
from calve.definition.forms.shapes import as_text, entries_of, text_of, uppered
from calve.definition.problems import Problems

_WORDS = ("failure_mode", "tags.*.namespace", "retry_policy.backoff.type")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A job as it stands in a list: its kind, and the map that describes it."""

    kind: Kind
    item: Node
    node: Node


@dataclass(frozen=True, slots=True)
class _Job:
    """A job whose keys have been told apart."""

    kind: Kind
    item: Node
    node: Node
    fields: dict[str, Node]
    others: dict[str, Node]
    """What can only be a param."""
    config: Config | None

    @property
    def id(self) -> str:
        """Its id as text; empty if there is none."""
        return (text_of(self.fields["id"]) or "") if "id" in self.fields else ""

    def take(self, *names: str) -> dict[str, Node]:
        """Return the fields that are steps' fields as they are."""
        return {name: self.fields[name] for name in names if name in self.fields}


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the steps of one form."""

    problems: Problems
    types: StepTypeNames
    unwrap: Callable[[Node, Problems], Wrapped | None]
    """Tells the kind of an item; None for what is no job."""
    spelling: Callable[[str], str] = as_written
    is_flat: bool = False
    """Whether the fields of a config map may stand on any job itself, and its name may be its id."""

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
        if job.kind is Kind.STEP:
            # The type decides what the other keys mean, so it is looked for first.
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

    def _placed(self, kind: Kind, others: dict[str, Node]) -> dict[str, Node]:
        """Return what may be a param; report keys that belong to jobs of another kind."""
        kept: dict[str, Node] = {}
        for key, item in others.items():
            owner = ONLY_OURS.get(self.spelling(key))
            if owner is None or (kind is Kind.TEMPLATE and key in OF_TEMPLATES):
                kept[key] = item
                continue
            hint = f"write {key}<string> if a param of that name is meant"
            self.problems.add(
                item, "misplaced_key", f"{key} belongs to a {owner}, not to a {kind}", hint=hint, at_key=True
            )
        return kept

    def _written(self, job: _Job, transition: Node | None) -> Node:
        if not isinstance(job.node.value, dict):
            return job.item.made({job.kind.value: job.node})
        step = {name: as_text(item) for name, item in job.take("id", "name").items()}
        step |= job.take("description", "failure_mode", "tags", "timeout")
        if "signal_dependencies" in job.fields:
            step["signal_dependencies"] = signals.dependencies(job.fields["signal_dependencies"], self.problems)
        if "signal_outputs" in job.fields:
            step["signal_outputs"] = signals.outputs(job.fields["signal_outputs"], self.problems)
        if transition is not None:
            step["transition"] = transition
        step |= self._fields(job)
        own = self._loop_params(job) if job.kind.is_loop else self._params(job)
        if own:
            step["params"] = job.node.made(own)
        return job.item.made({job.kind.value: uppered(job.node.made(step), *_WORDS)})

    def _fields(self, job: _Job) -> dict[str, Node]:
        """Return the fields that only steps of this kind have."""
        found = job.take(*AS_THEY_ARE[job.kind])
        if "type" in job.fields:
            found |= {"sub_type": job.fields["type"]} if job.kind is Kind.TEMPLATE else self._type(job)
        if "type_version" in job.fields:
            found["sub_type_version"] = as_text(job.fields["type_version"])
        if "jobs" in job.fields:
            found["steps"] = self.steps(job.fields["jobs"], job.fields.get("dag"))
        return found

    def _type(self, job: _Job) -> dict[str, Node]:
        """Return the type of a job: a step type, or the one behind a job template, whose name is kept."""
        node = job.fields["type"]
        found = step_type(job.fields, self.types)
        if found is None:  # it is reported where step types are checked
            return {"type": node}
        # A version belongs to a template, which may have the name of a step type.
        is_template = self.types.resolve(str(node.value)) is None or "type_version" in job.fields
        return {"type": node.made(found), **({"sub_type": node} if is_template else {})}

    def _params(self, job: _Job) -> dict[str, Node]:
        """Return the params of a job: the keys that mean nothing else, its ``params``, and those of its kind."""
        entries = dict(job.others)
        name = None
        if job.config is not None:
            name = job.config.name
            job.config.gather(entries, job.fields, job.node, self.problems)
        found = params(entries, self.problems, config=name)
        if (explicit := job.fields.get("params")) is not None:
            if not isinstance(explicit.value, dict):
                self.problems.add(explicit, "map_expected", "params is a map of names to values")
            for key, item in params(entries_of(explicit), self.problems, config=name).items():
                self._put(found, key, item)
        if job.kind is Kind.SUBWORKFLOW:
            self._put_subworkflow(found, job.fields)
        return found

    def _put_subworkflow(self, found: dict[str, Node], fields: dict[str, Node]) -> None:
        """Name the workflow to run: the one that is given, else the one of the job's own id."""
        if "workflow_id" in fields:
            self._put(found, "subworkflow_id", _string(fields["workflow_id"]))
        elif "id" in fields:
            found.setdefault("subworkflow_id", _string(fields["id"]))
        if "version" in fields:
            self._put(found, "subworkflow_version", _string(fields["version"]))
        elif "workflow_version" in found:  # what Maestro's Python client writes for it
            message = "workflow_version is a param of the child, and does not choose its version"
            self.problems.warn(found["workflow_version"], "version_is_param", message, hint="write version")

    def _loop_params(self, job: _Job) -> dict[str, Node]:
        found = params(job.others, self.problems)
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
