"""``calve run`` and ``calve restart``: start an instance, carry it out, follow it to its end."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calve.cli.files import SUFFIXES, load_file
from calve.cli.following import follow, shown, summarize
from calve.cli.given import params_option, parse_param
from calve.cli.hands import Hands, tell_if_nobody_works
from calve.cli.output import print_json
from calve.cli.pushing import accepted, keep
from calve.cli.signals import STOPPED, counted
from calve.cli.state import State, json_option
from calve.errors import ActionRefused, RequestInvalid

if TYPE_CHECKING:
    from calve.app import Workplace
    from calve.engine import Address, Started
    from calve.engine.model import Run, VersionRecord

no_wait_option = click.option(
    "--no-wait", is_flag=True, help="Only start it; a calve worker or calve up does the work."
)


def _given(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> dict[str, Any]:
    return dict(parse_param(word) for word in words)


def _step_params(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Sort STEP.NAME=VALUE by step."""
    found: dict[str, dict[str, Any]] = {}
    for word in words:
        name, value = parse_param(word)
        step, dot, param = name.rpartition(".")
        if not dot:
            raise click.BadParameter(f"{word!r} is not of the form STEP.NAME=VALUE")
        found.setdefault(step, {})[param] = value
    return found


@click.command()
@click.argument("workflow")
@click.argument("given", nargs=-1, metavar="[NAME=VALUE]...", callback=_given)
@params_option
@click.option(
    "--version", default="active", show_default=True, metavar="V", help="A number, active, latest or default."
)
@click.option("--request-id", metavar="ID", help="Names this start: repeated, it is the same instance.")
@no_wait_option
@json_option
@click.pass_obj
def run(state: State, /, workflow: str, given: Mapping[str, Any], params: Mapping[str, Any], **options: Any) -> int:
    r"""Start a workflow, and carry it out here until it is over.

    \b
      calve run demo.pipeline
      calve run demo.pipeline my_query="SELECT 1" -p limit=5
      calve run pipeline.yaml            push the file, then run it

    A param is NAME=VALUE; VALUE is JSON where it reads as JSON (5, true, [1, 2]), otherwise text. While it runs, this
    process also does whatever else is due in the project. If another process (calve up, calve worker) works on the
    same state already, that one carries the instance out, and this one shows how it goes.

    Ctrl-C stops the instance; a second one leaves at once. The exit code is 0 only if the instance succeeded.
    """
    with state.workplace() as workplace:
        version: str | int = options["version"]
        if _is_file(workflow):
            record = _pushed(state, workplace, Path(workflow))
            if record is None:
                return 1
            workflow, version = record.workflow_id, record.version_id
        elif Path(workflow).suffix in SUFFIXES and workplace.engine.state.workflow(workflow) is None:
            raise RequestInvalid(f"There is neither a file nor a workflow {workflow}.")
        started = workplace.engine.start(
            workflow,
            version=version,
            params={**given, **params},
            request_id=options["request_id"],
            initiator=_initiator(state.user),
        )
        return _told(state, workplace, started) if options["no_wait"] else carried_out(state, workplace, started.run)


@click.command()
@click.argument("workflow")
@click.argument("instance", type=int)
@click.option("--from-beginning", is_flag=True, help="Run every step again, not only those that are incomplete.")
@click.option("--step", metavar="PATH", help="Run this step and those after it again: job, loop/3/job.")
@params_option
@click.option(
    "--step-param",
    "step_params",
    multiple=True,
    metavar="STEP.NAME=VALUE",
    callback=_step_params,
    help="Change a param of a step.",
)
@click.option("--skip", multiple=True, metavar="STEP", help="Skip a step instead of running it again.")
@no_wait_option
@json_option
@click.pass_obj
def restart(state: State, /, workflow: str, instance: int, params: Mapping[str, Any], **options: Any) -> int:
    r"""Run an instance again: by default, what did not succeed and what comes after it.

    \b
      calve restart demo.pipeline 3
      calve restart demo.pipeline 3 --step load --step-param load.limit=5
      calve restart demo.pipeline 3 --from-beginning -p date=20260301

    It is carried out here like calve run.
    """
    from calve.engine import RunPolicy

    if options["from_beginning"] and options["step"]:
        raise click.UsageError("Give either --from-beginning or --step.")
    policy = RunPolicy.RESTART_FROM_BEGINNING if options["from_beginning"] else RunPolicy.RESTART_FROM_INCOMPLETE
    with state.workplace() as workplace:
        started = workplace.engine.restart(
            address(workflow, instance, options["step"]),
            policy=policy,
            params=params,
            step_params=options["step_params"],
            skip=options["skip"],
        )
        latest = workplace.engine.state.run(workflow, instance) or started.run
        return _told(state, workplace, started) if options["no_wait"] else carried_out(state, workplace, latest)


def address(workflow: str, instance: int, path: str | None = None, run_id: int | None = None) -> "Address":
    """Return where something is; a path is ``job``, ``loop/3/job``."""
    from calve.engine import Address

    return Address(workflow, instance, run_id, tuple(part for part in (path or "").split("/") if part))


def carried_out(state: State, workplace: "Workplace", run: "Run") -> int:
    """Follow a run to its end, carrying it out here unless another process does; return the exit code."""
    engine = workplace.engine
    with counted() as signals:
        with Hands(workplace) as hands:
            stopping = _Stopping(state, workplace, run)

            def each() -> None:
                hands.look()
                if signals():
                    stopping()

            with shown(engine, is_quiet=state.json) as show:
                ended = follow(engine, run, show, changed=hands.changed, each=each)
            if hands.under_way:
                click.echo(f"Waiting for steps of other instances: {hands.under_way} …", err=True)
        code = summarize(state, engine, ended)
    return STOPPED if code and stopping.is_asked else code


class _Stopping:
    """Stops a run once."""

    def __init__(self, state: State, workplace: "Workplace", run: "Run") -> None:
        self._state, self._workplace, self._run = state, workplace, run
        self.is_asked = False

    def __call__(self) -> None:
        if self.is_asked:
            return
        self.is_asked = True
        if not self._state.json:
            click.echo("Stopping … (once more leaves at once)", err=True)
        try:
            where = address(self._run.workflow_id, self._run.instance_id, run_id=self._run.run_id)
            self._workplace.engine.stop(where, by=self._state.user, reason="Ctrl-C")
        except ActionRefused:
            return  # it is over already


def _told(state: State, workplace: "Workplace", started: "Started") -> int:
    """Say what was started, and whether anybody will carry it out."""
    from calve.engine.views import started_json

    if state.json:
        print_json(started_json(started))
    else:
        click.echo(f"{started.run.workflow_id} {started.run.instance_id} run {started.run.run_id} {started.status}")
    tell_if_nobody_works(workplace)
    return 0


def _initiator(user: str) -> Any:
    from calve.engine import Initiator

    return Initiator(user=user)


def _is_file(word: str) -> bool:
    """Tell whether a word names a file rather than a workflow, whose name may have dots too."""
    path = Path(word)
    return path.suffix in SUFFIXES and (path.is_file() or len(path.parts) > 1)


def _pushed(state: State, workplace: "Workplace", file: Path) -> "VersionRecord | None":
    """Push the one workflow of a file; show what is wrong with it, and return nothing."""
    definitions = accepted(state, load_file(file))
    if definitions is None:
        return None
    if len(definitions) > 1:
        names = ", ".join(definition.workflow.id for definition in definitions)
        raise RequestInvalid(f"{file} describes several workflows: {names}.", remedy="Push it, then run one by its id.")
    record = keep(workplace.engine, definitions[0], state.user)
    if not state.json:
        click.echo(f"{record.workflow_id} version {record.version_id}", err=True)
    return record
