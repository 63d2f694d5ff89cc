"""Check the order of commits: no run may commit a capture before its rows were used. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from calve.definition.captures.branches import StepPath
from calve.definition.captures.rows import CapturedRows, Use
from calve.definition.document import Node
from calve.definition.files import StepFiles, readable
from calve.definition.graph import draw_paths
from calve.definition.problems import Problems
from calve.definition.step_types import IP_COMMIT, StepTypes, fields


def check_capture_order(workflow: Node, types: StepTypes, problems: Problems, files: StepFiles | None = None) -> None:
    """Report commits that a run can reach before, beside or without the steps that use what they commit.

    Args:
        workflow: a workflow in canonical form, in which no other error was found.
        types: what steps output.
        problems: where to report them.
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
        """Report two commits of one capture that can run in the same run."""
        loops = self.rows.place(one, other)
        level = self.rows.level(loops)
        paths = self._paths_to_both(loops, self.rows.lifted(one, loops), self.rows.lifted(other, loops))
        if paths:
            self._refuse(
                other,
                "commit_twice",
                f"{one} and {other} both commit what {self.capture} captured in one run",
                "remove one of them, or put them on branches of which only one runs: IF … and OTHERWISE",
                draw_paths(_distinct(paths), level.edges, other),
            )

    def _is_placed(self, commit: str) -> bool:
        """Tell whether every run that reaches a commit has captured exactly once; report it if not."""
        rows, capture = self.rows, self.capture
        others = [given for given in rows.given_to(commit) if given != capture]
        if others:
            hint = f"write capture_step: {others[0]}, or leave capture out"
            message = f"{commit} names the step {capture}, but is given the capture of {others[0]}"
            self._refuse(commit, "capture_differs", message, hint)
            return False
        around, within = rows.steps[commit].loops, rows.steps[capture].loops
        if around != within and around[: len(within)] == within:
            loop = around[len(within)]
            message = f"{commit} would commit what {capture} captured in the first iteration of {loop}, for all of them"
            self._refuse(
                commit, "commit_in_loop", message, f"move {commit} out of {loop}, and add the edge {loop} -> {commit}"
            )
            return False
        level = rows.level(within)
        if around != within or capture not in level.before[commit]:
            message = f"{commit} does not come after {capture}, whose capture it commits"
            self._refuse(commit, "capture_later", message, f"add the edge {capture} -> {commit}")
            return False
        path = self._path_around(within, commit, frozenset({capture}))
        if path:
            message = f"a run can reach {commit} without {capture}, whose capture it commits"
            hint = f"remove the edge {path[-2]} -> {commit}, or make every path to {commit} pass through {capture}"
            self._refuse(commit, "capture_later", message, hint, draw_paths([path], level.edges, commit))
        return path is None

    def _is_late(self, commit: str, use: Use) -> bool:
        """Tell whether a run can commit before a step has used the rows; report it if so."""
        rows, capture, user = self.rows, self.capture, use.step_id
        loops = rows.place(commit, user)
        level, here, there = rows.level(loops), rows.lifted(commit, loops), rows.lifted(user, loops)
        inside = "" if there == user else f" (in {there})"
        if there in level.before[here]:
            if not use.is_awaited:
                message = f"{commit} does not wait for the work of {user}{inside}, which uses what {capture} captured"
                hint = f"remove sync: false from {user}"
                drawing = draw_paths([level.path(there, here)], level.edges, here)
                self._refuse(commit, "commit_before_use", message, hint, drawing)
            return not use.is_awaited
        if here in level.before[there]:
            message = f"{commit} commits what {capture} captured before {user}{inside} uses it"
            hint = f"make {there} lead to {here}, not {here} to {there}"
            paths: tuple[StepPath, ...] = (level.path(here, there),)
        else:
            message = f"{commit} may commit what {capture} captured before {user}{inside} has used it"
            hint = f"add the edge {there} -> {here}"
            paths = ()
        both = self._paths_to_both(loops, here, there)
        if both:
            drawing = draw_paths(_distinct(paths or both), level.edges, here)
            self._refuse(commit, "commit_before_use", message, hint, drawing)
        return bool(both)

    def _check_around(self, commit: str) -> None:
        """Report a commit that a run can reach although no step has used the rows."""
        loops = self.rows.steps[commit].loops
        level = self.rows.level(loops)
        needed = self.rows.deliverers(self.capture, self.uses)
        avoided = frozenset(self.rows.lifted(step_id, loops) for step_id in needed)
        path = self._path_around(loops, commit, avoided) if avoided else None
        if path:
            names = " or ".join(sorted(avoided & level.before[commit]) or sorted(avoided))
            message = f"a run can reach {commit} without {names}: what {self.capture} captured would be skipped"
            hint = f"remove the edge {path[-2]} -> {commit}, or make every path to {commit} pass through {names}"
            if self.rows.is_implied(commit):
                hint = f"add a step of type IpCommit with ip_commit: {{capture_step: {self.capture}}} after {names}"
            self._refuse(commit, "commit_around_use", message, hint, draw_paths([path], level.edges, commit))

    def _warn_of_unused(self, commit: str) -> None:
        """Warn about a commit of rows that no step refers to, unless a file that cannot be read here may do so."""
        if self.rows.unread or self.rows.is_older(self.capture):
            return
        message = f"no step uses what {self.capture} captured: {commit} commits it unread"
        hint = f"refer to ${{{self.capture}.relation}} in the step that reads it"
        self.problems.warn(self.rows.steps[commit].node, "capture_unused", message, hint=hint)

    def _path_around(self, loops: tuple[str, ...], commit: str, avoided: frozenset[str]) -> StepPath | None:
        return self.rows.found(loops, self.capture, lambda runs: runs.path_around(commit, avoided), absent=avoided)

    def _paths_to_both(self, loops: tuple[str, ...], one: str, other: str) -> tuple[StepPath, StepPath] | None:
        return self.rows.found(loops, self.capture, lambda runs: runs.paths_to_both(one, other))

    def _refuse(self, commit: str, code: str, message: str, hint: str, drawing: str = "") -> None:
        place = fields(self.rows.steps[commit].node, IP_COMMIT)["capture_step"].node
        self.problems.add(place, code, message, hint=hint, drawing=drawing)


def _distinct(paths: tuple[StepPath, ...]) -> list[StepPath]:
    """Return paths without those that are the beginning of another one."""
    return [path for path in paths if not any(path != other and other[: len(path)] == path for other in paths)]
