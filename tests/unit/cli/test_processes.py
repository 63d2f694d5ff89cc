"""Who takes the place of a process that has died, and when."""

from dataclasses import dataclass, field

import pytest

from calve.cli.processes import END_SECONDS, PAUSES, STEADY, Supervisor


@dataclass
class Process:
    """A process that lives until a test says otherwise."""

    pid: int
    exitcode: int | None = None
    is_deaf: bool = False
    told: list[str] = field(default_factory=list)

    def terminate(self) -> None:
        """End, unless deaf."""
        self.told.append("terminate")
        if not self.is_deaf:
            self.exitcode = 0

    def kill(self) -> None:
        """End in any case."""
        if self.exitcode is None:
            self.told.append("kill")
            self.exitcode = -9

    def join(self, timeout: float | None = None) -> None:
        """Wait for nothing."""
        self.told.append(f"join {timeout}")


@dataclass
class World:
    """A clock, and the processes that were started."""

    now: float = 0.0
    started: list[Process] = field(default_factory=list)

    def start(self) -> Process:
        """Start a process."""
        self.started.append(Process(len(self.started)))
        return self.started[-1]

    def supervisor(self, number: int) -> Supervisor:
        """Return a supervisor in this world."""
        return Supervisor(number, self.start, lambda: self.now)


def test_all_are_started_and_left_alone_while_they_live() -> None:
    """A look at a supervisor that is well changes nothing."""
    world = World()
    supervisor = world.supervisor(3)
    supervisor.look()
    assert supervisor.processes == world.started
    assert len(world.started) == 3


def test_the_pause_grows_from_death_to_death(caplog: pytest.LogCaptureFixture) -> None:
    """Another process is started when the pause is over, not before; each death is logged."""
    world = World()
    supervisor = world.supervisor(1)
    for pause in (*PAUSES, PAUSES[-1]):
        world.started[-1].exitcode = 1
        supervisor.look()
        number = len(world.started)
        world.now += pause - 0.1
        supervisor.look()
        assert len(world.started) == number
        world.now += 0.2
        supervisor.look()
        assert len(world.started) == number + 1
    assert len(caplog.records) == len(PAUSES) + 1


def test_one_that_lived_for_long_is_replaced_soon() -> None:
    """What has killed those before it did not kill it, so that the pauses begin anew."""
    world = World()
    supervisor = world.supervisor(1)
    for lived in (0.0, 0.0, STEADY):
        world.now += lived
        world.started[-1].exitcode = 1
        supervisor.look()
        world.now += PAUSES[1]
        supervisor.look()
    world.started[-1].exitcode = 1
    supervisor.look()
    world.now += PAUSES[1]
    supervisor.look()
    assert len(world.started) == 5


def test_a_death_does_not_touch_the_others() -> None:
    """Only the place of the dead is taken."""
    world = World()
    supervisor = world.supervisor(2)
    world.started[0].exitcode = -9
    supervisor.look()
    world.now += PAUSES[0]
    supervisor.look()
    assert supervisor.processes == [world.started[2], world.started[1]]


def test_those_that_do_not_end_are_killed() -> None:
    """All are asked first; the time is for all of them together."""
    world = World()
    supervisor = world.supervisor(2)
    world.started[1].is_deaf = True
    supervisor.end()
    assert world.started[0].told == ["terminate", f"join {END_SECONDS}"]
    assert world.started[1].told == ["terminate", f"join {END_SECONDS}", "kill"]


def test_nobody_is_left_where_not_all_could_be_started() -> None:
    """The error goes on, and those that were started are killed."""
    world = World()

    def start() -> Process:
        if world.started:
            raise OSError("too many processes")
        return world.start()

    with pytest.raises(OSError, match="too many"):
        Supervisor(2, start)
    assert world.started[0].told == ["kill"]
