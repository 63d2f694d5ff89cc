"""The runtimes that there are: the built-in ones, and those that installed packages add.

NoOp, Approval, subworkflow, foreach, while and template are carried out by the engine itself.

A package adds a runtime by an entry point of the group ``calve.step_runtimes``, named like the step type, that gives
something to call without arguments: a class with ``execute`` and ``terminate``, most simply. It declares the type
itself under ``calve.step_types``. See examples/step-type.
"""

from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint, entry_points

from calve.engine.ports import Runtimes, StepRuntime
from calve.errors import EnvironmentUnfit
from calve.steps.services import Services

ENTRY_POINTS = "calve.step_runtimes"


def _sleep(services: Services) -> StepRuntime:
    from calve.steps.sleep import Sleep

    return Sleep(services.clock)


def _http(services: Services) -> StepRuntime:
    from calve.steps.http import Http
    from calve.steps.http.addresses import AllowList

    return Http(AllowList(services.settings.http.allow), services.clock)


def _sql(services: Services) -> StepRuntime:
    from calve.steps.forks import Forks
    from calve.steps.sql import WORK, Sql

    around, settings = services.surroundings, services.settings
    return Sql(settings.connections, around.project, settings.store.url, Forks(WORK, around))


def _docker(services: Services) -> StepRuntime:
    from calve.steps.docker import Docker

    return Docker(services.settings.docker.host, services.surroundings.grace_seconds)


def _kubernetes(services: Services) -> StepRuntime:
    from calve.steps.kubernetes import Kubernetes

    return Kubernetes(services.settings.kubernetes)


def _shell(services: Services) -> StepRuntime:
    from calve.steps.shell import Shell

    return Shell(services.surroundings)


def _python(services: Services) -> StepRuntime:
    from calve.steps.python import Python

    return Python(services.surroundings)


def _java(services: Services) -> StepRuntime:
    from calve.steps.java import Java

    return Java(services.surroundings)


def _notebook(services: Services) -> StepRuntime:
    from calve.steps.notebook import Notebook

    return Notebook(services.surroundings)


def _spark(services: Services) -> StepRuntime:
    from calve.steps.spark import Spark

    return Spark(services.settings, services.surroundings, services.lake, services.deliveries, services.tables)


def _ip_capture(services: Services) -> StepRuntime:
    from calve.steps.captures import IpCapture

    return IpCapture(services.captures, services.deliveries, services.declared)


def _ip_commit(services: Services) -> StepRuntime:
    from calve.steps.captures import IpCommit

    return IpCommit(services.captures, services.deliveries)


def _icdc(services: Services) -> StepRuntime:
    from calve.steps.captures import ICDC

    return ICDC(services.captures, services.deliveries, services.lake)


BUILT_IN: dict[str, Callable[[Services], StepRuntime]] = {
    "Sleep": _sleep,
    "Http": _http,
    "SQL": _sql,
    "Spark": _spark,
    "Docker": _docker,
    "Kubernetes": _kubernetes,
    "Shell": _shell,
    "Python": _python,
    "Java": _java,
    "Notebook": _notebook,
    "IpCapture": _ip_capture,
    "IpCommit": _ip_commit,
    "ICDC": _icdc,
}
"""Makes the runtime of a built-in step type; what it needs is imported only then."""


def load_runtimes(services: Services) -> Runtimes:
    """Return how each runtime is made, by the name of its step type; those of installed packages win."""
    built_in: dict[str, Callable[[], StepRuntime]] = {name: partial(make, services) for name, make in BUILT_IN.items()}
    return built_in | {point.name: partial(_made, point) for point in entry_points(group=ENTRY_POINTS)}


def _made(point: EntryPoint) -> StepRuntime:
    """Make a runtime of another package.

    Raises:
        EnvironmentUnfit: the package is broken.
    """
    try:
        runtime: StepRuntime = point.load()()
    except Exception as error:
        raise EnvironmentUnfit(
            f"The runtime of {point.name} steps, {point.value}, cannot be made: {type(error).__name__}: {error}",
            remedy="Reinstall the package that adds it, or ask its authors.",
        ) from error
    return runtime
