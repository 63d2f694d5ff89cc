"""The config maps of step types, whose fields some jobs write without the map."""

from dataclasses import dataclass

from calve.definition.document import Node
from calve.definition.forms.job_keys import KEYS, Kind
from calve.definition.forms.keys import snake
from calve.definition.forms.known_types import StepTypeNames
from calve.definition.forms.shapes import entries_of, text_of
from calve.definition.problems import Problems

FLAT_TYPES = frozenset({"ICDC"})
"""Types whose config may always be written on the job itself, as it was before there were config maps."""


@dataclass(frozen=True, slots=True)
class Config:
    """The config map of a step type."""

    name: str
    fields: frozenset[str]
    is_flat: bool
    """Whether its fields may stand on the job itself."""

    def keys(self) -> dict[str, str]:
        """Return the keys on a job that mean a field of the map: those that mean nothing else there."""
        return {
            key: snake(key) if snake(key) in self.fields else key for key in self.fields if key not in KEYS[Kind.STEP]
        }

    def gather(self, entries: dict[str, Node], fields: dict[str, Node], job: Node, problems: Problems) -> None:
        """Put the fields that stand on the job itself into the map among its entries."""
        meant = set(self.keys().values())
        flat = {key: item for key, item in fields.items() if key in meant}
        if not flat:
            return
        written = entries.get(self.name, job)
        inside = dict(entries_of(entries.get(self.name)))
        for key, item in flat.items():
            if key in inside:
                problems.add(item, "said_twice", f"{self.name} says {key} already", at_key=True)
            inside.setdefault(key, item)
        entries[self.name] = written.made(inside)


def step_type(fields: dict[str, Node], types: StepTypeNames) -> str | None:
    """Return the step type of a job, which may stand behind a job template; None if there is none."""
    node = fields.get("type")
    if node is None or not isinstance(node.value, str):
        return None
    version = fields.get("type_version")
    return types.resolve(node.value) or types.template(node.value, None if version is None else text_of(version))


def config_of(type_name: str | None, types: StepTypeNames, *, is_flat: bool) -> Config | None:
    """Return the config map of a step type; None if it has none."""
    found = None if type_name is None else types.config(type_name)
    return None if found is None else Config(*found, is_flat=is_flat or type_name in FLAT_TYPES)
