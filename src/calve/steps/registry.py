"""The runtime of each step type: the built-in ones, and those that installed packages add.

The engine itself runs NoOp, Approval, subworkflow, foreach, while and template.

A package adds a runtime through an entry point in the group ``calve.step_runtimes``. Its name is the step type's, and
its value is called without arguments: usually a class with ``execute`` and ``terminate``. The package declares the type
itself under ``calve.step_types``. See examples/step-type.
"""

from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint, entry_points

from calve.engine import Runtimes, StepRuntime
from calve.errors import EnvironmentUnfit
from calve.steps import captures, docker, http, kubernetes, processes, programs, sleep, spark, sql
from calve.steps.services import Services

ENTRY_POINTS = "calve.step_runtimes"


def _sql(given: Services) -> StepRuntime:
    settings, workspace = given.settings, given.workspace
    forks = processes.ForkServers(sql.WORK, workspace)
    return sql.Sql(settings.connections, workspace.project, settings.store.url, forks)


# The packages load lazily: a runtime's modules are imported when it is created.
BUILT_IN: dict[str, Callable[[Services], StepRuntime]] = {
    "Sleep": lambda given: sleep.Sleep(given.clock),
    "Http": lambda given: http.Http(http.AllowList(given.settings.http.allow), given.clock),
    "SQL": _sql,
    "Spark": lambda given: spark.Spark(given.settings, given.workspace, given.lake, given.deliveries, given.tables),
    "Docker": lambda given: docker.Docker(given.settings.docker.host, given.workspace.grace_seconds),
    "Kubernetes": lambda given: kubernetes.Kubernetes(given.settings.kubernetes),
    "Shell": lambda given: programs.Shell(given.workspace),
    "Python": lambda given: programs.Python(given.workspace),
    "Java": lambda given: programs.Java(given.workspace),
    "Notebook": lambda given: programs.Notebook(given.workspace),
    "IpCapture": lambda given: captures.IpCapture(given.captures, given.deliveries, given.declared),
    "IpCommit": lambda given: captures.IpCommit(given.captures, given.deliveries),
    "ICDC": lambda given: captures.ICDC(given.captures, given.deliveries, given.lake),
}
"""Creates the runtime of each built-in step type."""


def load_runtimes(services: Services) -> Runtimes:
    """Return a factory for each step type's runtime; a runtime from an installed package replaces a built-in one."""
    built_in: dict[str, Callable[[], StepRuntime]] = {name: partial(make, services) for name, make in BUILT_IN.items()}
    return built_in | {point.name: partial(_from_package, point) for point in entry_points(group=ENTRY_POINTS)}


def _from_package(point: EntryPoint) -> StepRuntime:
    """Make the runtime that an installed package adds.

    Raises:
        EnvironmentUnfit: the package is broken.
    """
    try:
        runtime: StepRuntime = point.load()()
    except Exception as error:
        raise EnvironmentUnfit(
            f"The runtime of {point.name} steps, {point.value}, cannot be loaded: {type(error).__name__}: {error}",
            remedy="Reinstall the package that adds it, or ask its authors.",
        ) from error
    return runtime
