"""Which steps use the rows of a capture, and which commit it, in a canonical workflow. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property, partial
from itertools import product
from typing import TypeVar

from calve.definition.captures.branches import Branches, Runs
from calve.definition.document import Node, entries, entry, id_of, items, steps_of, text, texts
from calve.definition.graph import conditions_of
from calve.definition.model import SEPARATOR
from calve.definition.params import DEFAULT_PARAMS, STEP_STATUS, references
from calve.definition.references import Reference, named_step, references_in, references_of
from calve.definition.step_types import (
    APPROVAL,
    ICDC,
    IP_CAPTURE,
    IP_COMMIT,
    NO_OP,
    SLEEP,
    SPARK,
    SQL,
    Given,
    Output,
    Outputs,
    StepType,
    StepTypes,
    fields,
)
from calve.expressions import Atom, Constant, ParamRead, atoms_of

_Found = TypeVar("_Found")
_FILE = "file"
"""Stands for the file of a step, in place of the name of a param."""
_CAPTURES = (IP_CAPTURE.name, ICDC.name)
_IDLE = frozenset({NO_OP.name, APPROVAL.name, SLEEP.name, IP_CAPTURE.name, ICDC.name})
"""Types whose steps write no rows."""
_NOT_RUN = frozenset({"NOT_CREATED", "UNSATISFIED"})
"""The status of a step that does not run: before the run decides it, and after."""
_COUNTS = frozenset({"records", "rows", "files", "bytes"})
_REMARKS = re.compile(r"--[^\n]*|/\*.*?\*/|'[^']*'|\"[^\"]*\"|`[^`]*`|\$\{[^}]*\}", re.DOTALL)
_WRITING = frozenset(
    {"alter", "call", "create", "delete", "drop", "insert", "load", "merge", "replace", "truncate", "update"}
)
_READING = frozenset({"desc", "describe", "explain", "from", "select", "show", "table", "values", "with"})
Meant = Callable[[str, str | None], bool]
"""Tells whether a param of a step is meant, or of the workflow if the step is empty; None is any param."""
SHARED = 4
"""The most shared atoms of conditions whose combinations are all tried."""


class Effect(Enum):
    """What a step does with the rows that it uses."""

    WRITES = "writes"
    MAY_WRITE = "may write"
    """A user's program: whether it writes is unknown."""
    READS = "reads"


@dataclass(frozen=True, slots=True)
class Use:
    """A step that uses the rows of a capture."""

    step_id: str
    effect: Effect
    targets: frozenset[str] = frozenset()
    """The tables that it declares as targets."""
    is_awaited: bool = True
    """Whether the step waits for its work to end."""

    def stands_in_for(self, other: "Use") -> bool:
        """Tell whether a later success of this use makes up for a failure of another."""
        if self.effect is Effect.READS:
            return other.effect is Effect.READS
        return not self.targets or other.targets <= self.targets


@dataclass(frozen=True, slots=True)
class _Placed:
    kind: str
    node: Node
    loops: tuple[str, ...]
    """The loops around it, outermost first."""

    @property
    def type(self) -> str:
        """Its step type, or its kind if it is a composite."""
        return text(entry(self.node, "type")) or self.kind if self.kind == "step" else self.kind


@dataclass(frozen=True)
class CapturedRows:
    """The captures of a workflow without errors: their commits, and the steps that use their rows."""

    workflow: Node
    types: StepTypes
    read: Callable[[str], str | None] = lambda _: None
    """Returns the text of a SQL file that a step reads; None if it cannot be read here."""
    _known_runs: dict[tuple[tuple[str, ...], str, frozenset[str]], list[Callable[[], Runs]]] = field(
        default_factory=dict
    )

    @cached_property
    def steps(self) -> Mapping[str, _Placed]:
        """All steps, including those inside loops."""
        return dict(_placed(self.workflow, ()))

    @cached_property
    def captures(self) -> tuple[str, ...]:
        """The steps that capture."""
        return tuple(step_id for step_id, step in self.steps.items() if step.type in _CAPTURES)

    @cached_property
    def commits(self) -> Mapping[str, str]:
        """The capture step of each step that commits one."""
        found = {step_id: self._committed_by(step_id) for step_id, step in self.steps.items() if _is_commit(step)}
        return {commit: capture for commit, capture in found.items() if capture is not None}

    def is_older(self, capture: str) -> bool:
        """Tell whether a capture step is an ICDC step, whose target table any step can name."""
        return self.steps[capture].type == ICDC.name

    def is_implied(self, commit: str) -> bool:
        """Tell whether a commit was added for an ICDC step; it then has the position of that step."""
        return self.steps[commit].node.path == self.steps[self.commits[commit]].node.path

    def level(self, loops: tuple[str, ...]) -> Branches:
        """Return the graph of the workflow, or of a loop inside it."""
        return self._levels[loops]

    @cached_property
    def _levels(self) -> Mapping[tuple[str, ...], Branches]:
        edges: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
        for step_id, step in self.steps.items():
            edges.setdefault(step.loops, {})[step_id] = conditions_of(step.node)
        return {loops: Branches(found) for loops, found in edges.items()}

    def is_inside(self, step_id: str, loops: tuple[str, ...]) -> bool:
        """Tell whether a step is inside these loops, at any depth."""
        return self.steps[step_id].loops[: len(loops)] == loops

    def lifted(self, step_id: str, loops: tuple[str, ...]) -> str:
        """Return a step as seen from an outer level: the loop that contains it, or the step itself."""
        return (*self.steps[step_id].loops, step_id)[len(loops)]

    def place(self, one: str, other: str) -> tuple[str, ...]:
        """Return the innermost level that contains both steps."""
        shared = []
        for left, right in zip(self.steps[one].loops, self.steps[other].loops, strict=False):
            if left != right:
                break
            shared.append(left)
        return tuple(shared)

    def uses(self, capture: str) -> dict[str, Use]:
        """Return the steps that refer to the rows of a capture, directly or through params of other steps."""
        users = (
            step_id
            for step_id, step in self.steps.items()
            if self.rows_in(capture)[step_id]
            or (step.type == SPARK.name and self._is_given(step_id, SPARK, capture))
            or self._names(capture, step.node)
        )
        return {each: self._use(each) for each in users if each != capture and not _is_commit(self.steps[each])}

    def uses_of_params(self, names: frozenset[str]) -> dict[str, Use]:
        """Return the steps that refer to some params of the workflow."""
        found = self.params_in(names)
        return {step_id: self._use(step_id) for step_id, params in found.items() if params}

    def rows_in(self, capture: str) -> Mapping[str, frozenset[str]]:
        """Return the params of each step that refer to the rows of a capture."""
        return self._rows[capture]

    @cached_property
    def _rows(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        return {capture: self._referring(self._rows_of(capture)) for capture in self.captures}

    def params_in(self, names: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the params of each step that refer to some params of the workflow, directly or through others."""
        own = references_of(self.workflow)
        while more := {name for name, used in own.items() if any(each.name in names for each in used)} - names:
            names = names.union(more)
        return self._referring(lambda owner, path: not owner and path in names)

    def deliverers(self, capture: str, uses: Mapping[str, Use]) -> frozenset[str]:
        """Return the uses of which at least one must run, inside the capture's loop.

        A step that may write counts if no step is known to write; otherwise only if it can run instead of one.
        """
        loops = self.steps[capture].loops
        uses = {each: use for each, use in uses.items() if self.is_inside(each, loops)}
        writing = [step_id for step_id, use in uses.items() if use.effect is Effect.WRITES]
        unsure = [step_id for step_id, use in uses.items() if use.effect is Effect.MAY_WRITE]
        if not writing:
            return frozenset(unsure or uses)
        instead = (one for one in unsure if not any(self.can_both_run(one, other, capture) for other in writing))
        return frozenset({*writing, *instead})

    def can_both_run(self, one: str, other: str, capture: str) -> bool:
        """Tell whether two steps can run in the same run."""
        loops = self.place(one, other)
        left, right = self.lifted(one, loops), self.lifted(other, loops)
        return left == right or bool(self.found(loops, capture, lambda runs: right in runs.beside(left)))

    def found(
        self,
        loops: tuple[str, ...],
        capture: str,
        look: Callable[[Runs], _Found | None],
        absent: frozenset[str] = frozenset(),
    ) -> _Found | None:
        """Return what ``look`` finds in the runs of a level in which a capture has rows and some steps do not run.

        Conditions that several steps share have the same value in one run. That is tried only if something was found
        without it.
        """
        first, *others = self._runs(loops, capture, absent)
        found = look(first())
        return found if not found or not others else next(filter(None, (look(other()) for other in others)), None)

    def _runs(self, loops: tuple[str, ...], capture: str, absent: frozenset[str]) -> Sequence[Callable[[], Runs]]:
        """Return the runs of a level, first without and then for each combination of values of shared conditions."""
        key = (loops, capture, absent)
        if key not in self._known_runs:
            level, shared = self.level(loops), self._shared(loops)
            answers = product((True, False), repeat=len(shared)) if shared else ()
            worlds = [{}, *(dict(zip(shared, truths, strict=True)) for truths in answers)]
            self._known_runs[key] = [cache(partial(self._under, level, capture, absent, world)) for world in worlds]
        return self._known_runs[key]

    def _under(self, level: Branches, capture: str, absent: frozenset[str], assumed: Mapping[Atom, bool]) -> Runs:
        def world(step_id: str, atom: Atom) -> bool | None:
            known = self._known(step_id, atom, capture, absent)
            return assumed.get(atom) if known is None else known

        return level.under(world)

    def _shared(self, loops: tuple[str, ...]) -> list[Atom]:
        """Return the atoms that conditions of several steps of a level share; empty if there are too many to try."""
        seen: dict[Atom, set[str]] = {}
        for step_id, targets in self.level(loops).edges.items():
            for condition in targets.values():
                for atom in atoms_of(condition):
                    seen.setdefault(atom, set()).add(step_id)
        found = [atom for atom, askers in seen.items() if len(askers) > 1 and self._is_common(atom, askers)]
        return found if len(found) <= SHARED else []

    def _is_common(self, atom: Atom, askers: set[str]) -> bool:
        """Tell whether an atom has the same value for every step that uses it."""
        declared = entries(entry(self.workflow, "params"))
        own = {name for step_id in askers for name in entries(entry(self.steps[step_id].node, "params"))}
        return all(
            isinstance(side, Constant)
            or (
                isinstance(side, ParamRead)
                and (side.step or SEPARATOR in side.name or side.name in declared.keys() - own)
            )
            for side in (atom.left, atom.right)
            if side is not None
        )

    def _known(self, step_id: str, atom: Atom, capture: str, absent: frozenset[str]) -> bool | None:
        """Return the value of an atom if a capture has rows and some steps do not run; None if that is unknown."""
        is_swapped = isinstance(atom.left, Constant)
        asked, other = (atom.right, atom.left) if is_swapped else (atom.left, atom.right)
        if not isinstance(asked, ParamRead):
            return None
        owner, name = asked.step or step_id, asked.name
        if asked.step is None and SEPARATOR in name:
            owner, name = named_step(name, self.steps)
        constant = other.value if isinstance(other, Constant) else None
        if owner in absent and name == STEP_STATUS and atom.operator is not None and isinstance(constant, str):
            is_over = owner in self.level(self.steps[step_id].loops).before[step_id]
            return constant == "UNSATISFIED" if is_over or constant not in _NOT_RUN else None
        if owner != capture:
            return None
        if name == "changed" and atom.operator is None:
            return True
        if name in _COUNTS and isinstance(constant, int) and self._only_appends(capture):
            return _of_positive(constant, is_equality=atom.operator == "==", is_swapped=is_swapped)
        return None

    def _only_appends(self, capture: str) -> bool:
        """Tell whether a capture takes appends only, so that every change has rows."""
        step = self.steps[capture]
        operations = fields(step.node, _type_of(step.type)).get("data_operations")
        return operations is None or operations.plain() == ["append"]

    def _committed_by(self, commit: str) -> str | None:
        """Return the capture step that a commit names, or else the one whose capture id it is given."""
        named = fields(self.steps[commit].node, IP_COMMIT).get("capture_step")
        step_id = text(named.value) if named else None
        return step_id if step_id in self.captures else next(iter(self.given_to(commit)), None)

    def given_to(self, commit: str) -> tuple[str, ...]:
        """Return the capture steps whose capture id a commit is given."""
        return tuple(capture for capture in self.captures if self._is_given(commit, IP_COMMIT, capture))

    def _is_given(self, step_id: str, step_type: StepType, capture: str) -> bool:
        """Tell whether the field ``capture`` of a step is the id of a capture."""
        field = fields(self.steps[step_id].node, step_type).get("capture")
        if field is None:
            return False
        is_id, found = _id_of(capture), self._ids[capture]
        return any(self._leads(each, step_id, is_id, found) for each in references_in(field))

    @cached_property
    def _ids(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """The params of each step that are the id of a capture, by the capture step."""
        return {capture: self._referring(_id_of(capture)) for capture in self.captures}

    def _names(self, capture: str, node: Node) -> bool:
        """Tell whether a step names the target table of an ICDC step."""
        named = fields(self.steps[capture].node, ICDC).get("target_table") if self.is_older(capture) else None
        table = text(named.value) if named else None
        if not table:
            return False
        pattern = re.compile(rf"(?<!\w){re.escape(_bare(table))}(?!\w)", re.IGNORECASE)
        return any(pattern.search(_bare(found)) for found in texts(entry(node, "params")))

    def _rows_of(self, capture: str) -> Meant:
        """Return a function that tells whether a param of a capture step refers to its rows."""
        node = self.steps[capture].node
        outputs, others = self.types.outputs(node), {*entries(entry(node, "params")), *DEFAULT_PARAMS.step, STEP_STATUS}
        return lambda owner, path: owner == capture and (path is None or _is_row(path, outputs, others))

    def _referring(self, is_meant: Meant) -> dict[str, frozenset[str]]:
        """Return the params of each step that refer to what is meant, directly or through params of steps and loops."""
        found: dict[str, frozenset[str]] = dict.fromkeys(self.steps, frozenset())
        is_growing = True
        while is_growing:
            is_growing = False
            for step_id, params in self._references.items():
                hit = frozenset(
                    name
                    for name, used in params.items()
                    if any(self._leads(each, step_id, is_meant, found) for each in used)
                )
                if hit != found[step_id]:
                    found[step_id], is_growing = hit, True
        return found

    @cached_property
    def _references(self) -> Mapping[str, Mapping[str, frozenset[Reference]]]:
        return {
            step_id: {**references_of(step.node), _FILE: frozenset(map(Reference, self._in_file(step)))}
            for step_id, step in self.steps.items()
        }

    def _in_file(self, step: _Placed) -> Sequence[str]:
        return references(self._program(step) or "") if _file_of(step) else ()

    def _program(self, step: _Placed) -> str | None:
        """Return the SQL of a step, from its file if it names one; None if it is unknown."""
        if file := _file_of(step):
            return self.read(file)
        config = _sql_fields(step)
        return next((text(config[name].value) for name in ("script", "query") if name in config), None)

    @cached_property
    def unread(self) -> bool:
        """Whether a step reads a file that cannot be read here."""
        return any(_file_of(step) and self._program(step) is None for step in self.steps.values())

    def _leads(self, reference: Reference, step_id: str, is_meant: Meant, found: Mapping[str, frozenset[str]]) -> bool:
        owner, path = reference.step or "", reference.name
        if not owner and path is not None:
            owner, inner = named_step(path, self.steps)
            path = inner if owner else path
        if is_meant(owner, path) or path is None:
            return is_meant(owner, path)
        if owner:
            return path.partition(".")[0] in found.get(owner, ())
        return path in found[step_id] or any(
            "loop_params" in found[loop]
            and path in entries(entry(self.steps[loop].node, "params", "loop_params", "value"))
            for loop in self.steps[step_id].loops
        )

    def _use(self, step_id: str) -> Use:
        step = self.steps[step_id]
        targets = frozenset(filter(None, (text(item) for item in items(entry(step.node, "targets")))))
        is_sync = entry(step.node, "sync")
        return Use(
            step_id, _effect(step, targets, self._program(step)), targets, is_sync is None or is_sync.value is not False
        )


def _placed(holder: Node, loops: tuple[str, ...]) -> Iterator[tuple[str, _Placed]]:
    for kind, step in steps_of(holder):
        step_id = id_of(step)
        yield step_id, _Placed(kind, step, loops)
        yield from _placed(step, (*loops, step_id))


def _is_commit(step: _Placed) -> bool:
    return step.type == IP_COMMIT.name


def _id_of(capture: str) -> Meant:
    return lambda owner, path: (owner, path) == (capture, "capture_id")


def _type_of(name: str) -> StepType:
    return ICDC if name == ICDC.name else IP_CAPTURE


def _sql_fields(step: _Placed) -> Mapping[str, Given]:
    """Return the fields of a step that runs SQL; empty for other steps."""
    found = {SPARK.name: SPARK, SQL.name: SQL}.get(step.type)
    return fields(step.node, found) if found else {}


def _file_of(step: _Placed) -> str | None:
    """Return the path of the SQL file that a step reads; None if it reads none."""
    named = _sql_fields(step).get("file")
    return None if named is None else text(named.value) or ""


def _effect(step: _Placed, targets: frozenset[str], program: str | None) -> Effect:
    if targets or step.kind != "step":
        return Effect.WRITES
    if step.type in _IDLE:
        return Effect.READS
    if step.type not in {SPARK.name, SQL.name}:
        return Effect.MAY_WRITE
    words = re.findall(r"[a-z]+", _REMARKS.sub(" ", program or "").lower())
    if _WRITING.intersection(words):
        return Effect.WRITES
    return Effect.READS if words and words[0] in _READING else Effect.MAY_WRITE


def _is_row(path: str, outputs: Outputs, others: set[str]) -> bool:
    head, _, rest = path.partition(".")
    output = outputs.params.get(head)
    if output is not None and (not output.params or not rest):
        return output.gives_rows or any(each.gives_rows for each in output.params)
    if output is None and head in others:
        return False
    # A table known only at run time has the outputs of every table; misspelt names are reported elsewhere.
    known: dict[str, Output] = {each.name: each for each in (output.params if output else outputs.params.values())}
    return not rest or rest not in known or known[rest].gives_rows


def _of_positive(constant: int, *, is_equality: bool, is_swapped: bool) -> bool | None:
    """Tell whether a comparison with a count holds for every count above 0; None if that depends on the count."""
    if is_equality:
        return False if constant < 1 else None
    if is_swapped:  # constant > count
        return False if constant <= 1 else None
    return True if constant < 1 else None


def _bare(name: str) -> str:
    return name.replace("`", "").replace('"', "")
