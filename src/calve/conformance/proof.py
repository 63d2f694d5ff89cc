"""Carries out the checks of a proof, one after the other, and cleans up after them, however they end."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from calve.app import captures_on, deliveries_on, new_id
from calve.conformance.checks import CHECKS, CLEANUP, Check
from calve.conformance.failures import code_of, message_of, remedy_of
from calve.conformance.model import CheckResult, Outcome, Proof, ProofOptions, Skipped
from calve.conformance.workspace import Workspace, check_namespace_name, settings_for
from calve.errors import NotSupportedByCatalog
from calve.lake import Lake
from calve.settings import Settings
from calve.store import open_store

Tell = Callable[[CheckResult], None]
Say = Callable[[str], None]


def prove(
    settings: Settings,
    catalog: str,
    options: ProofOptions | None = None,
    *,
    tell: Tell = lambda _: None,
    say: Say = lambda _: None,
    checks: Sequence[Check] = CHECKS,
    open_lake: Callable[[Settings], Lake] = Lake,
) -> Proof:
    """Check all that calve asks of a catalog in a scratch namespace, and remove what was made.

    Args:
        settings: the project's; of its state, nothing is read or written.
        catalog: the name of the catalog.
        options: the namespace, whether Spark takes part, and whether everything is kept.
        tell: called with each result; also with that of the cleanup after Ctrl-C.
        say: called before anything that takes long.
        checks: what to check.
        open_lake: opens the catalogs of settings.

    Raises:
        CatalogUnknown: the settings have no such catalog.
        RequestInvalid: the namespace cannot be used.
    """
    options = options or ProofOptions()
    namespace = f"calve_proof_{secrets.token_hex(4)}" if options.namespace is None else options.namespace
    check_namespace_name(namespace)
    results: dict[str, CheckResult] = {}

    def carry_out(check: Check) -> None:
        results[check.name] = _result(check, workspace, results)
        tell(results[check.name])

    with _workspace(settings, catalog, namespace, options, open_lake) as workspace:
        workspace.say = say
        try:
            for check in checks:
                carry_out(check)
        finally:
            carry_out(CLEANUP)
        version = None if workspace.spark is None else workspace.spark.version
        return Proof(catalog, namespace, tuple(results.values()), tuple(workspace.leftovers), version)


@contextmanager
def _workspace(
    settings: Settings, catalog: str, namespace: str, options: ProofOptions, open_lake: Callable[[Settings], Lake]
) -> Iterator[Workspace]:
    """Open the catalog with a throw-away state."""
    with TemporaryDirectory(prefix="calve-proof-") as folder:
        own = settings_for(settings, catalog, namespace, Path(folder))
        with closing(open_lake(own)) as lake, open_store(own.store.url) as store:
            yield Workspace(
                lake,
                catalog,
                namespace,
                new_id(),
                captures_on(lake, store),
                deliveries_on(lake, store),
                has_random_name=options.namespace is None,
                uses_spark=options.uses_spark,
                keeps=options.keeps,
            )


def _result(check: Check, workspace: Workspace, before: Mapping[str, CheckResult]) -> CheckResult:
    """Carry out one check, unless one that it needs has not passed."""
    unmet = next((before[name] for name in check.needs if before[name].outcome is not Outcome.PASSED), None)
    if unmet is not None:
        return CheckResult(check.name, check.proves, Outcome.SKIPPED, 0.0, _reason(unmet))
    begun = time.monotonic()
    outcome, detail, code, remedy = _outcome(check, workspace)
    return CheckResult(check.name, check.proves, outcome, round(time.monotonic() - begun, 3), detail, code, remedy)


def _reason(unmet: CheckResult) -> str:
    """Return why a check is skipped that needs another one: the first cause."""
    match unmet.outcome:
        case Outcome.SKIPPED:
            return unmet.detail
        case Outcome.NOT_SUPPORTED:
            return f"{unmet.check} is not supported by this catalog"
        case _:
            return f"{unmet.check} failed"


def _outcome(check: Check, workspace: Workspace) -> tuple[Outcome, str, str, str]:
    """Carry out one check; return its outcome, what was found, and the code and the remedy of an error."""
    try:
        found = check.run(workspace)
    except NotSupportedByCatalog as error:
        return Outcome.NOT_SUPPORTED, error.message, error.code, error.remedy
    except Exception as error:  # noqa: BLE001 - whatever the catalog and its libraries raise is the result
        return Outcome.FAILED, message_of(error), code_of(error), remedy_of(error)
    if isinstance(found, Skipped):
        return Outcome.SKIPPED, found.reason, "", ""
    return Outcome.PASSED, found, "", ""
