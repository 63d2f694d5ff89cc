"""Check that commits stand behind the work: no run may commit a capture whose rows were not used. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from calve.definition.branches import Way
from calve.definition.captured_rows import CapturedRows, Use
from calve.definition.document import Node
from calve.definition.drawing import draw_ways
from calve.definition.problems import Problems
from calve.definition.scripts import StepFiles, readable
from calve.definition.step_types import StepTypes
from calve.definition.step_types.captures import IP_COMMIT
from calve.definition.step_types.reading import fields


def check_capture_order(workflow: Node, types: StepTypes, problems: Problems, files: StepFiles | None = None) -> None:
    """Note commits that a run can come to before, beside or around the steps that use what they commit.

    Args:
        workflow: a workflow in canonical form, in which no other error was found.
        types: what steps give.
        problems: where to note them.
        files: finds the files that steps read.
    """
    rows = CapturedRows(workflow, types, readable(files))
    for capture in rows.captures:
        commits = [commit for commit, named in rows.commits.items() if named == capture]
        check = _Check(rows, capture, rows.uses(capture) if commits else {}, problems)
        for commit in commits:
            check.commit(commit)
        for one, other in combinations(commits, 2):
            check.pair(one, other)


@dataclass(frozen=True, slots=True)
class _Check:
    rows: CapturedRows
    capture: str
    uses: Mapping[str, Use]
    problems: Problems

    def commit(self, commit: str) -> None:
        """Check one commit of the capture."""
        if not self._is_placed(commit):
            return
        late = [use for use in self.uses.values() if self._is_late(commit, use)]
        if self.uses and not late:
            self._check_around(commit)
        elif not self.uses:
            self._warn_of_unused(commit)

    def pair(self, one: str, other: str) -> None:
        """Refuse two commits that both take place in one run."""
        loops = self.rows.place(one, other)
        level = self.rows.level(loops)
        ways = self._ways_to_both(loops, self.rows.lifted(one, loops), self.rows.lifted(other, loops))
        if ways:
            self._refuse(
                other,
                "commit_twice",
                f"{one} and {other} both commit what {self.capture} captured in one run",
                "remove one of them, or put them on branches of which one runs: IF … and OTHERWISE",
                draw_ways(_distinct(ways), level.edges, other),
            )

    def _is_placed(self, commit: str) -> bool:
        """Tell whether a commit stands where every run that comes to it has captured once; refuse it if not."""
        rows, capture = self.rows, self.capture
        others = [given for given in rows.given_to(commit) if given != capture]
        if others:
            hint = f"write capture_step: {others[0]}, or leave capture out"
            message = f"{commit} names the step {capture}, and the capture of {others[0]}"
            self._refuse(commit, "capture_differs", message, hint)
            return False
        around, within = rows.steps[commit].loops, rows.steps[capture].loops
        if around != within and around[: len(within)] == within:
            loop = around[len(within)]
            message = f"{commit} would commit what {capture} captured in the first iteration of {loop}, for all of them"
            self._refuse(commit, "commit_in_loop", message, f"move {commit} out of {loop}, and let {loop} lead to it")
            return False
        level = rows.level(within)
        if around != within or capture not in level.before[commit]:
            message = f"{commit} does not come after {capture}, whose capture it commits"
            self._refuse(commit, "capture_later", message, f"let {capture} lead to {commit}")
            return False
        way = self._way_around(within, commit, frozenset({capture}))
        if way:
            message = f"a run can come to {commit} without {capture}, whose capture it commits"
            hint = f"remove the edge {way[-2]} -> {commit}, or let every way to {commit} lead over {capture}"
            self._refuse(commit, "capture_later", message, hint, draw_ways([way], level.edges, commit))
        return way is None

    def _is_late(self, commit: str, use: Use) -> bool:
        """Tell whether a run can commit before a step has used the rows; refuse that."""
        rows, capture, user = self.rows, self.capture, use.step_id
        loops = rows.place(commit, user)
        level, here, there = rows.level(loops), rows.lifted(commit, loops), rows.lifted(user, loops)
        inside = "" if there == user else f" (in {there})"
        if there in level.before[here]:
            if not use.is_awaited:
                message = f"{commit} does not wait for the work of {user}{inside}, which uses what {capture} captured"
                hint = f"leave sync: false out of {user}"
                drawing = draw_ways([level.way(there, here)], level.edges, here)
                self._refuse(commit, "commit_before_use", message, hint, drawing)
            return not use.is_awaited
        if here in level.before[there]:
            message = f"{commit} commits what {capture} captured before {user}{inside} uses it"
            hint = f"let {there} lead to {here}, and not {here} to {there}"
            ways: tuple[Way, ...] = (level.way(here, there),)
        else:
            message = f"{commit} may commit what {capture} captured before {user}{inside} has used it"
            hint = f"add the edge {there} -> {here}"
            ways = ()
        both = self._ways_to_both(loops, here, there)
        if both:
            drawing = draw_ways(_distinct(ways or both), level.edges, here)
            self._refuse(commit, "commit_before_use", message, hint, drawing)
        return bool(both)

    def _check_around(self, commit: str) -> None:
        """Refuse a commit that a run can come to while no step has used the rows."""
        loops = self.rows.steps[commit].loops
        level = self.rows.level(loops)
        needed = self.rows.deliverers(self.capture, self.uses)
        avoided = frozenset(self.rows.lifted(step_id, loops) for step_id in needed)
        way = self._way_around(loops, commit, avoided) if avoided else None
        if way:
            names = " or ".join(sorted(avoided & level.before[commit]) or sorted(avoided))
            message = f"a run can come to {commit} without {names}: what {self.capture} captured would be passed over"
            hint = f"remove the edge {way[-2]} -> {commit}, or let every way to {commit} lead over {names}"
            if self.rows.is_implied(commit):
                hint = f"add a step of type IpCommit with ip_commit: {{capture_step: {self.capture}}} after {names}"
            self._refuse(commit, "commit_around_use", message, hint, draw_ways([way], level.edges, commit))

    def _warn_of_unused(self, commit: str) -> None:
        """Warn of a commit of rows that nothing refers to, unless a file that cannot be read here may do so."""
        if self.rows.unread or self.rows.is_older(self.capture):
            return
        message = f"no step uses what {self.capture} captured: {commit} commits it unread"
        hint = f"refer to ${{{self.capture}.relation}} in the step that is to read it"
        self.problems.warn(self.rows.steps[commit].node, "capture_unused", message, hint=hint)

    def _way_around(self, loops: tuple[str, ...], commit: str, avoided: frozenset[str]) -> Way | None:
        return self.rows.found(loops, self.capture, lambda runs: runs.way_around(commit, avoided), absent=avoided)

    def _ways_to_both(self, loops: tuple[str, ...], one: str, other: str) -> tuple[Way, Way] | None:
        return self.rows.found(loops, self.capture, lambda runs: runs.ways_to_both(one, other))

    def _refuse(self, commit: str, code: str, message: str, hint: str, drawing: str = "") -> None:
        place = fields(self.rows.steps[commit].node, IP_COMMIT)["capture_step"].node
        self.problems.add(place, code, message, hint=hint, drawing=drawing)


def _distinct(ways: tuple[Way, ...]) -> list[Way]:
    """Return ways without those that are the beginning of another one."""
    return [way for way in ways if not any(way != other and other[: len(way)] == way for other in ways)]
