"""``calve run`` and ``calve restart``: start an instance, run it here, and follow it until it ends."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from calve.app import WorkerThread
from calve.cli.command import command, option
from calve.cli.commands import definitions
from calve.cli.definition_files import vocabulary_of
from calve.cli.interrupts import STOPPED, counted
from calve.cli.live_views import follow, shown, summarize, wondering
from calve.cli.options import params_option, parse_param
from calve.cli.output import print_json
from calve.cli.session import Document, Session
from calve.cli.state import State
from calve.connection import SUFFIXES, load_file, step_files
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
    help="Wait until it ends, or only start it. Default: wait, but not with a server (CALVE_URL).",
)


def _given(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> dict[str, Any]:
    return dict(parse_param(word) for word in words)


def _step_params(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Group STEP.NAME=VALUE by step."""
    found: dict[str, dict[str, Any]] = {}
    for word in words:
        name, value = parse_param(word)
        step, dot, param = name.rpartition(".")
        if not dot:
            raise click.BadParameter(f"{word!r} is not of the form STEP.NAME=VALUE")
        found.setdefault(step, {})[param] = value
    return found


@command(
    "Starts.start_workflow",
    version=option(default="active", metavar="V"),
    request_id=option(metavar="ID"),
    persist_failed_run=None,
    refuse_unknown_params=None,
)
@click.argument("given", nargs=-1, metavar="[NAME=VALUE]...", callback=_given)
@params_option
@wait_option
def run(state: State, /, workflow_id: str, given: Mapping[str, Any], params: Mapping[str, Any], **options: Any) -> int:
    r"""Start a workflow, and run it here until it ends.

    \b
      calve run demo.pipeline
      calve run demo.pipeline my_query="SELECT 1" -p limit=5
      calve run pipeline.yaml            push the file, then run it

    A param is NAME=VALUE; VALUE is read as JSON if it is valid JSON (5, true, [1, 2]), else as text. Until the instance
    ends, this process is a worker of the project, and runs other instances too. If another worker (calve up, calve
    worker) already works on the same SQLite state, that one runs the instance, and this command shows its progress.

    With a server (CALVE_URL), a worker there runs the instance: the command prints where to look, and with --wait also
    shows its progress.

    Ctrl-C stops the instance; press it again to quit immediately. The exit code is 0 only if the instance succeeded.
    """
    with state.connect() as session:
        version: str | int = options["version"]
        if _is_file(workflow_id):
            pushed = _pushed(state, session, Path(workflow_id), {**given, **params})
            if pushed is None:
                return 1
            workflow_id, version = pushed["workflow_id"], pushed["workflow_version_id"]
        try:
            started = session.operations.start(
                workflow_id, {**given, **params}, version=version, request_id=options["request_id"]
            )
        except WorkflowMissing as error:
            if Path(workflow_id).suffix in SUFFIXES:
                raise RequestInvalid(f"There is no file and no workflow named {workflow_id}.") from error
            raise
        if _is_awaited(session, options["wait"]):
            if not state.json and (view := session.view_url(started)):
                _print_started(session, started, view)
            return carried_out(state, session, started)
        return _submitted(state, session, started)


@command(
    "Starts.restart_instance",
    request_id=None,
    restart_policy=None,
    run_policy=None,
    skip=option(metavar="STEP"),
    refuse_unknown_params=None,
    keep=option(metavar="STEP"),
)
@click.option("--from-beginning", is_flag=True, help="Run every step again, not only incomplete ones.")
@click.option("--step", metavar="PATH", help="Run this step again, and the steps after it: job, loop/3/job.")
@params_option
@click.option(
    "--step-param",
    "step_params",
    multiple=True,
    metavar="STEP.NAME=VALUE",
    callback=_step_params,
    help="Change a param of a step.",
)
@click.option("--dry-run", is_flag=True, help="Only show which steps would be kept and which would run again.")
@wait_option
def restart(state: State, /, workflow_id: str, instance_id: int, params: Mapping[str, Any], **options: Any) -> int:
    r"""Run an instance again: by default, the steps that did not succeed and those after them.

    \b
      calve restart demo.pipeline 3
      calve restart demo.pipeline 3 --step load --step-param load.limit=5
      calve restart demo.pipeline 3 --from-beginning -p date=20260301
      calve restart demo.pipeline 3 --latest             after a fix: push it, then continue

    An instance keeps the version that it started with. With --latest, it continues with the newest version: steps that
    succeeded and did not change are kept, and so are approvals; all other steps run, and the steps after them.
    --dry-run shows which ones.

    Like calve run, it runs the instance here until it ends, unless a server is named (CALVE_URL).
    """
    if options["from_beginning"] and (options["step"] or options["latest"]):
        raise click.UsageError("Give either --from-beginning or --step or --latest.")
    if options["keep"] and not options["latest"]:
        raise click.UsageError("--keep needs --latest.")
    which, request = (workflow_id, instance_id, options["step"]), _restart_request(params, options)
    with state.connect() as session:
        operations = session.operations
        if options["dry_run"]:
            return _planned(state, operations.plan_restart(*which, **request))
        if options["latest"] and not state.json:
            _show_plan(operations.plan_restart(*which, **request))
        started = operations.restart(*which, **request)
        if _is_awaited(session, options["wait"]):
            return carried_out(state, session, operations.instance(workflow_id, instance_id))
        return _submitted(state, session, started)


def _restart_request(params: Mapping[str, Any], options: Mapping[str, Any]) -> Document:
    """Return the request of a restart, of a whole instance or of a step."""
    request: Document = {
        "run_params": dict(params),
        "skip": list(options["skip"]),
        "latest": options["latest"],
        "keep": list(options["keep"]),
        "refuse_unknown_params": True,
    }
    by_step = dict(options["step_params"])
    if options["step"]:
        own = by_step.pop(options["step"].rpartition("/")[2], {})
        return {**request, "step_run_params": own, "other_step_run_params": by_step}
    policy = "RESTART_FROM_BEGINNING" if options["from_beginning"] else "RESTART_FROM_INCOMPLETE"
    return {**request, "restart_policy": policy, "step_run_params": by_step}


def _planned(state: State, plan: Document) -> int:
    if state.json:
        print_json(plan)
    else:
        _show_plan(plan, err=False)
    return 0


def _show_plan(plan: Document, *, err: bool = True) -> None:
    """Print which steps a restart keeps, and which it runs again."""
    older, newer = plan["workflow_version_id"], plan["restart_version_id"]
    click.echo(f"Version {newer}" + (f", before: {older}" if older != newer else ""), err=err)
    width = max(len(step["step_id"]) for step in plan["steps"])
    for step in plan["steps"]:
        obstacle = f"; cannot run again: {step['obstacle']}" if step["obstacle"] else ""
        what = _FATES[step["fate"]]
        click.echo(f"  {step['step_id']:<{width}}  {what:<10}  {step['reason']}{obstacle}", err=err)
    if plan["refusal"] and not err:
        click.echo(f"The restart would be refused: {plan['refusal']}")


def _is_awaited(session: Session, wanted: bool | None) -> bool:  # noqa: FBT001 - click's three states
    """Tell whether to wait for the end: by default, if this process runs the instance."""
    return session.project is not None if wanted is None else wanted


def carried_out(state: State, session: Session, run: Document) -> int:
    """Follow a run until it ends, running it here unless another process does; return the exit code."""
    with counted() as signals:
        with WorkerThread(session.project) if session.project is not None else nullcontext() as worker:
            stopping = _Stopping(state, session, run)

            def each() -> None:
                if worker is not None:
                    worker.look()
                if signals():
                    stopping()

            with shown(session, is_quiet=state.json) as show:
                changed = worker.changed if worker else None
                ended = follow(session, run, wondering(session, show), changed=changed, each=each)
            if worker is not None and worker.under_way:
                click.echo(f"Waiting for running steps of other instances: {worker.under_way} …", err=True)
        code = summarize(state, session, ended)
    return STOPPED if code and stopping.is_asked else code


class _Stopping:
    """Stops a run, once, however often it is called."""

    def __init__(self, state: State, session: Session, run: Document) -> None:
        self._state, self._session, self._run = state, session, run
        self.is_asked = False

    def __call__(self) -> None:
        if self.is_asked:
            return
        self.is_asked = True
        if not self._state.json:
            click.echo("Stopping … (press Ctrl-C again to quit immediately)", err=True)
        try:
            run = self._run
            self._session.operations.stop(run["workflow_id"], run["workflow_instance_id"], reason="Ctrl-C")
        except ActionRefused:
            return  # it has ended


def _submitted(state: State, session: Session, started: Document) -> int:
    """Print which instance was started, and warn if no worker runs."""
    view = session.view_url(started)
    if state.json:
        print_json(started if view is None else {**started, "view_url": view})
    else:
        _print_started(session, started, view)
    session.warn_without_worker()
    return 0


def _print_started(session: Session, started: Document, view: str | None) -> None:
    """Print that a run was submitted, and where to look: at its page, if there is one."""
    which = f"{started['workflow_id']} {started['workflow_instance_id']}"
    if session.project is not None:
        click.echo(f"{which} run {started['workflow_run_id']} {started['status']}")
    else:
        where = f"View at {view}" if view else f"Follow it with: calve status {which}"
        click.echo(f"Workflow run has been successfully submitted. {where}")


def _is_file(word: str) -> bool:
    """Tell whether a word is the path of a file rather than the id of a workflow, which may also contain dots."""
    path = Path(word)
    return path.suffix in SUFFIXES and (path.is_file() or len(path.parts) > 1)


def _pushed(state: State, session: Session, file: Path, params: Mapping[str, Any]) -> Document | None:
    """Push the one workflow of a file; if it is invalid, show its problems and return None.

    Raises:
        RequestInvalid: the file has several workflows, or a param is unknown; nothing is pushed.
    """
    from calve.definition import check_run_params

    project, vocabulary = state.settings.project, vocabulary_of(state)
    found = definitions.accepted(state, load_file(file, project, vocabulary))
    if found is None:
        return None
    if len(found) > 1:
        names = ", ".join(definition.workflow.id for definition in found)
        raise RequestInvalid(f"{file} defines several workflows: {names}.", remedy="Push it, then run one by its id.")
    check_run_params(found[0].workflow, params, vocabulary, step_files(file, project))
    pushed = definitions.keep(session.operations, found[0])
    if not state.json:
        click.echo(definitions.shown(pushed), err=True)
    return pushed
