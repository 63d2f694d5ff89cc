"""Where a param's definition comes from, and who started the instance."""

from enum import StrEnum


class ParamSource(StrEnum):
    """Who defined a param last."""

    SYSTEM = "SYSTEM"
    TEMPLATE_SCHEMA = "TEMPLATE_SCHEMA"
    SYSTEM_INJECTED = "SYSTEM_INJECTED"
    SYSTEM_DEFAULT = "SYSTEM_DEFAULT"
    DEFINITION = "DEFINITION"
    SIGNAL = "SIGNAL"
    TIME_TRIGGER = "TIME_TRIGGER"
    OUTPUT_PARAMETER = "OUTPUT_PARAMETER"
    LAUNCH = "LAUNCH"
    RESTART = "RESTART"
    SUBWORKFLOW = "SUBWORKFLOW"
    TEMPLATE = "TEMPLATE"
    FOREACH = "FOREACH"
    WHILE = "WHILE"
    WORKFLOW_PARAMETER = "WORKFLOW_PARAMETER"

    @property
    def is_system(self) -> bool:
        """Tell whether it is the system rather than a user."""
        return self in _SYSTEM


_SYSTEM = frozenset(
    {ParamSource.SYSTEM, ParamSource.TEMPLATE_SCHEMA, ParamSource.SYSTEM_INJECTED, ParamSource.SYSTEM_DEFAULT}
)


class InitiatorType(StrEnum):
    """Who starts an instance."""

    MANUAL = "MANUAL"
    SUBWORKFLOW = "SUBWORKFLOW"
    FOREACH = "FOREACH"
    WHILE = "WHILE"
    TEMPLATE = "TEMPLATE"
    TIME = "TIME"
    SIGNAL = "SIGNAL"
    INCREMENTAL = "INCREMENTAL"
    """A change of tables; not Maestro's."""

    @property
    def is_upstream(self) -> bool:
        """Tell whether it is a step of another instance, which has its children under control."""
        return self in _UPSTREAM

    def run_source(self, *, is_fresh: bool) -> ParamSource:
        """Return the source of the params that come with a run."""
        if self.is_upstream:
            return ParamSource(self.value)
        return ParamSource.LAUNCH if is_fresh else ParamSource.RESTART


_UPSTREAM = frozenset({InitiatorType.SUBWORKFLOW, InitiatorType.FOREACH, InitiatorType.WHILE, InitiatorType.TEMPLATE})
