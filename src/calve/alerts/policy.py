"""Which alerts go where: the rules of the settings, and what definitions request. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError

from calve.alerts.model import Route
from calve.definition.model import AlertConfig, Alerting, AlertType, Granularity, Slack
from calve.settings import AlertRule, AlertSettings

TYPES: dict[str, AlertType] = {
    "failure": AlertType.STEP_FAILURE,
    "success": AlertType.RUN_SUCCESS,
    "long_running": AlertType.LONG_RUNNING,
    "late": AlertType.TCT_VIOLATION,
}
"""The settings' words for Maestro's types."""
_UNASKED = frozenset({AlertType.STEP_FAILURE, AlertType.TCT_VIOLATION, AlertType.LONG_RUNNING})
"""Types of alerts that the recipients in a definition get even without a config for the type."""
EMAIL, SLACK = "email", "slack"


@dataclass(frozen=True, slots=True)
class Wish:
    """One route for one type of alert."""

    route: Route
    after: int | None = None
    """The time limit whose violation causes the alert, in milliseconds."""
    is_by_step: bool = False
    is_by_rule: bool = False
    """Whether the settings request it, rather than the workflow."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings' rules, and the channels for addresses in definitions."""

    rules: tuple[AlertRule, ...] = ()
    email: str = EMAIL
    slack: str = SLACK

    @classmethod
    def of(cls, settings: AlertSettings) -> "Policy":
        """Return the policy of the settings; the first channel of a type is used for addresses in definitions."""
        first: dict[str, str] = {channel.type: name for name, channel in reversed(settings.channels.items())}
        return cls(settings.rules, first.get(EMAIL, EMAIL), first.get(SLACK, SLACK))

    def wishes(self, kind: AlertType, workflow_id: str, properties: Mapping[str, Any]) -> tuple[Wish, ...]:
        """Return the routes for one type of alert of a workflow."""
        if properties.get("alerting_disabled"):
            return ()
        return (*self._by_rules(kind, workflow_id), *self._by_definition(kind, alerting_of(properties)))

    def _by_rules(self, kind: AlertType, workflow_id: str) -> Iterator[Wish]:
        for rule in self.rules:
            is_for = any(fnmatchcase(workflow_id, pattern) for pattern in rule.workflows)
            if is_for and kind in {TYPES[word] for word in rule.on}:
                after = None if rule.after is None else round(rule.after.total_seconds() * 1_000)
                yield from (Wish(Route(channel), after, is_by_rule=True) for channel in rule.channels)

    def _by_definition(self, kind: AlertType, alerting: Alerting | None) -> Iterator[Wish]:
        config = None if alerting is None else alerting.type_configs.get(kind)
        if alerting is None or (config is None and kind not in _UNASKED) or (config is not None and config.disabled):
            return
        config = config or AlertConfig()
        after = None if config.duration_minutes is None else config.duration_minutes * 60_000
        is_by_step = config.granularity is Granularity.STEP
        for route in self._routes(alerting, config):
            yield Wish(route, after, is_by_step=is_by_step)

    def _routes(self, alerting: Alerting, config: AlertConfig) -> Iterator[Route]:
        """Yield the routes: those of the type's config, else those for all types."""
        own = config if config.emails or config.pagerduties or config.slack else alerting
        if own.emails:
            yield Route(self.email, own.emails)
        slack = own.slack or Slack()
        for place in (*slack.channels, *(f"@{user.removeprefix('@')}" for user in slack.users)):
            yield Route(self.slack, (place,), slack.mention_users)
        yield from (Route(name) for name in own.pagerduties)


def alerting_of(properties: Mapping[str, Any]) -> Alerting | None:
    """Return the alert settings of a workflow's properties; None if there are none, or they cannot be read."""
    raw = properties.get("alerting")
    try:
        return None if raw is None else Alerting.model_validate(raw)
    except ValidationError:
        return None  # pushes check it, but a newer version of calve may have accepted more
