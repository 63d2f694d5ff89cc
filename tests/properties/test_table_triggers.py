"""Whatever comes, and however instances end: a trigger by tables fires once for each change, in time, and alone."""

from dataclasses import dataclass, field

from hypothesis import given, strategies as st

from calve.triggers.tables import ChangeRules, Memory, Reaction, UncommittedChange, decide


@dataclass
class Table:
    """A table, a workflow that captures it, and its trigger, on a clock of its own."""

    rules: ChangeRules
    now: int = 1_000
    commits: list[tuple[int, int]] = field(default_factory=list)
    """When each came, and how many files it brought."""
    done: int = 0
    """How many of them the workflow has committed."""
    taken: int | None = None
    """How many the instance that runs has captured; None: none runs."""
    memory: Memory = field(default_factory=Memory)
    due_at: int | None = None
    fired: list[tuple[int, int]] = field(default_factory=list)
    """What it fired for: from where to where."""

    def look(self) -> None:
        """Let the trigger decide, and check what it decides."""
        is_busy = self.taken is not None
        new = self.commits[self.done :]
        files = sum(count for _, count in new)
        changes = []
        if new:
            at = [when for when, _ in new]
            changes = [
                UncommittedChange("t", "u", self.done, None, len(self.commits), len(new), files, files, at[0], at[-1])
            ]
        decision = decide(changes, self.memory, self.rules, self.now, is_busy=is_busy)
        self.memory, self.due_at = decision.memory, decision.due_at
        assert self.due_at is None or self.due_at > self.now
        if decision.reaction is not Reaction.FIRE:
            return
        assert not is_busy, "it overlaps itself"
        assert (self.done, len(self.commits)) not in self.fired, "it fires for the same change again"
        rules = self.rules
        is_late = rules.max_delay is not None and self.now >= new[0][0] + rules.max_delay
        assert is_late or (files >= rules.min_files and self.now >= new[-1][0] + rules.debounce), "it fires too early"
        self.fired.append((self.done, len(self.commits)))
        self.taken = len(self.commits)

    def advance(self, milliseconds: int) -> None:
        """Let time pass, with a look whenever one is due."""
        until = self.now + milliseconds
        while self.due_at is not None and self.due_at <= until:
            self.now = self.due_at
            self.look()
        self.now = until

    def commit(self, files: int) -> None:
        """Add a snapshot, which is seen at once."""
        self.commits.append((self.now, files))
        self.look()

    def end(self, *, is_success: bool) -> None:
        """End the instance that runs; its end is a reason to look."""
        if self.taken is not None:
            self.done = self.taken if is_success else self.done
            self.taken = None
            self.look()


_RULES = st.builds(
    ChangeRules,
    min_files=st.integers(0, 6),
    max_delay=st.none() | st.integers(1, 500),
    debounce=st.integers(0, 200),
)
_EVENTS = st.lists(
    st.tuples(st.just("commit"), st.integers(1, 4))
    | st.tuples(st.just("advance"), st.integers(1, 300))
    | st.tuples(st.sampled_from(["succeed", "fail"]), st.just(0)),
    max_size=40,
)


@given(_RULES, _EVENTS)
def test_it_fires_once_for_each_change_in_time_and_alone(rules: ChangeRules, events: list[tuple[str, int]]) -> None:
    """Check each decision, and at the end that nothing was forgotten."""
    table = Table(rules)
    for what, number in events:
        match what:
            case "commit":
                table.commit(number)
            case "advance":
                table.advance(number)
            case _:
                table.end(is_success=what == "succeed")
    table.end(is_success=True)
    table.advance(1_000)  # longer than any delay
    table.end(is_success=True)
    table.advance(1_000)
    left = sum(count for _, count in table.commits[table.done :])
    is_failed = (table.done, len(table.commits)) in table.fired
    is_too_little = rules.max_delay is None and left < rules.min_files
    assert not left or is_failed or is_too_little or table.taken is not None, "a change was forgotten"
