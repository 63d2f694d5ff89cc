"""``calve run`` and ``calve restart``: start an instance, carry it out, follow it to its end."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from calve.cli import pushing
from calve.cli.desk import Again, Desk, Document
from calve.cli.files import SUFFIXES, load_file, step_files
from calve.cli.following import follow, place_of, shown, summarize, wondering
from calve.cli.given import address, params_option, parse_param
from calve.cli.hands import Hands, tell_if_nobody_works
from calve.cli.local_desk import LocalDesk
from calve.cli.output import print_json
from calve.cli.signals import STOPPED, counted
from calve.cli.state import State, json_option
from calve.cli.words import words
from calve.errors import ActionRefused, RequestInvalid, WorkflowMissing

_FATES = {
    "KEPT": "kept",
    "RUNS_AGAIN": "runs again",
    "RUNS": "runs",
    "SKIPPED": "skipped",
    "REMOVED": "removed",
}

wait_option = click.option(
    "--wait/--no-wait",
    default=None,
    help="Follow it to its end, or only start it; by default followed, but not on a server (CALVE_URL).",
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
@wait_option
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

    With a server (CALVE_URL), that carries it out: this prints where to look, or with --wait shows how it goes.

    Ctrl-C stops the instance; a second one leaves at once. The exit code is 0 only if the instance succeeded.
    """
    with state.desk() as desk:
        version: str | int = options["version"]
        if _is_file(workflow):
            pushed = _pushed(state, desk, Path(workflow), {**given, **params})
            if pushed is None:
                return 1
            workflow, version = pushed["workflow_id"], pushed["workflow_version_id"]
        try:
            started = desk.start(
                workflow, version=version, params={**given, **params}, request_id=options["request_id"]
            )
        except WorkflowMissing as error:
            if Path(workflow).suffix in SUFFIXES:
                raise RequestInvalid(f"There is neither a file nor a workflow {workflow}.") from error
            raise
        if _is_awaited(desk, options["wait"]):
            if not state.json and (view := desk.view(started)):
                _tell_where(desk, started, view)
            return carried_out(state, desk, started)
        return _told(state, desk, started)


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
@click.option(
    "--latest",
    is_flag=True,
    help="Continue with the newest version of the workflow: keep what succeeded and did not change.",
)
@click.option(
    "--keep", multiple=True, metavar="STEP", help="With --latest, keep the results of a step and of those before it."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be kept and what would run again.")
@wait_option
@json_option
@click.pass_obj
def restart(state: State, /, workflow: str, instance: int, params: Mapping[str, Any], **options: Any) -> int:
    r"""Run an instance again: by default, what did not succeed and what comes after it.

    \b
      calve restart demo.pipeline 3
      calve restart demo.pipeline 3 --step load --step-param load.limit=5
      calve restart demo.pipeline 3 --from-beginning -p date=20260301
      calve restart demo.pipeline 3 --latest             after a fix: push it, then continue

    An instance keeps the version that it started with. With --latest it continues with the newest one that was pushed:
    steps that succeeded and did not change are kept, approvals that were given stand, and everything else runs, with
    what comes after it. --dry-run shows which steps that would be.

    It is carried out here like calve run.
    """
    if options["from_beginning"] and (options["step"] or options["latest"]):
        raise click.UsageError("Give either --from-beginning or --step or --latest.")
    if options["keep"] and not options["latest"]:
        raise click.UsageError("--keep needs --latest.")
    again = Again(
        options["from_beginning"],
        params,
        options["step_params"],
        options["skip"],
        options["latest"],
        options["keep"],
    )
    place = address(workflow, instance, options["step"])
    with state.desk() as desk:
        if options["dry_run"]:
            return _planned(state, desk.plan_restart(place, again))
        if options["latest"] and not state.json:
            _show_plan(desk.plan_restart(place, again))
        started = desk.restart(place, again)
        if _is_awaited(desk, options["wait"]):
            return carried_out(state, desk, desk.instance(address(workflow, instance)))
        return _told(state, desk, started)


def _planned(state: State, plan: Document) -> int:
    if state.json:
        print_json(plan)
    else:
        _show_plan(plan, err=False)
    return 0


def _show_plan(plan: Document, *, err: bool = True) -> None:
    """Print what a restart keeps and what it runs again."""
    older, newer = plan["workflow_version_id"], plan["restart_version_id"]
    click.echo(f"Version {newer}" + (f", before: {older}" if older != newer else ""), err=err)
    width = max(len(step["step_id"]) for step in plan["steps"])
    for step in plan["steps"]:
        obstacle = f"; cannot run again: {step['obstacle']}" if step["obstacle"] else ""
        what = _FATES[step["fate"]]
        click.echo(f"  {step['step_id']:<{width}}  {what:<10}  {step['reason']}{obstacle}", err=err)
    if plan["refusal"] and not err:
        click.echo(f"It would be refused: {plan['refusal']}")


def _is_awaited(desk: Desk, wanted: bool | None) -> bool:  # noqa: FBT001 - click's three states
    """Tell whether what is started is followed: what runs here is, what a server runs only if so told."""
    return isinstance(desk, LocalDesk) if wanted is None else wanted


def carried_out(state: State, desk: Desk, run: Document) -> int:
    """Follow a run to its end, carrying it out here unless another process does; return the exit code."""
    with counted() as signals:
        with Hands(desk.workplace) if isinstance(desk, LocalDesk) else nullcontext() as hands:
            stopping = _Stopping(state, desk, run)

            def each() -> None:
                if hands is not None:
                    hands.look()
                if signals():
                    stopping()

            with shown(desk, is_quiet=state.json) as show:
                changed = hands.changed if hands else None
                ended = follow(desk, run, wondering(desk, show), changed=changed, each=each)
            if hands is not None and hands.under_way:
                click.echo(f"Waiting for steps of other instances: {hands.under_way} …", err=True)
        code = summarize(state, desk, ended)
    return STOPPED if code and stopping.is_asked else code


class _Stopping:
    """Stops a run once."""

    def __init__(self, state: State, desk: Desk, run: Document) -> None:
        self._state, self._desk, self._run = state, desk, run
        self.is_asked = False

    def __call__(self) -> None:
        if self.is_asked:
            return
        self.is_asked = True
        if not self._state.json:
            click.echo("Stopping … (once more leaves at once)", err=True)
        try:
            self._desk.act("stop", place_of(self._run), reason="Ctrl-C")
        except ActionRefused:
            return  # it is over already


def _told(state: State, desk: Desk, started: Document) -> int:
    """Say what was started, and whether anybody will carry it out."""
    view = desk.view(started)
    if state.json:
        print_json(started if view is None else {**started, "view_url": view})
    else:
        _tell_where(desk, started, view)
    tell_if_nobody_works(desk)
    return 0


def _tell_where(desk: Desk, started: Document, view: str | None) -> None:
    """Say that a run was submitted, and where to look: at its page, where there is one."""
    which = f"{started['workflow_id']} {started['workflow_instance_id']}"
    if isinstance(desk, LocalDesk):
        click.echo(f"{which} run {started['workflow_run_id']} {started['status']}")
    else:
        where = f"View at {view}" if view else f"Follow it with: calve status {which}"
        click.echo(f"Workflow run has been successfully submitted. {where}")


def _is_file(word: str) -> bool:
    """Tell whether a word names a file rather than a workflow, whose name may have dots too."""
    path = Path(word)
    return path.suffix in SUFFIXES and (path.is_file() or len(path.parts) > 1)


def _pushed(state: State, desk: Desk, file: Path, params: Mapping[str, Any]) -> Document | None:
    """Push the one workflow of a file; show what is wrong with it, and return nothing.

    Raises:
        RequestInvalid: it has several, or does not know a param; nothing is pushed.
    """
    from calve.definition.run_params import check_run_params

    project, vocabulary = state.settings.project, words(state)
    definitions = pushing.accepted(state, load_file(file, project, vocabulary))
    if definitions is None:
        return None
    if len(definitions) > 1:
        names = ", ".join(definition.workflow.id for definition in definitions)
        raise RequestInvalid(f"{file} describes several workflows: {names}.", remedy="Push it, then run one by its id.")
    check_run_params(definitions[0].workflow, params, vocabulary, step_files(file, project))
    pushed = pushing.keep(desk, definitions[0])
    if not state.json:
        click.echo(pushing.shown(pushed), err=True)
    return pushed
