"""Every metric is described."""

import re
from pathlib import Path

from calve.telemetry import Gauges, Happened, Metrics

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


class Nothing:
    """A store in which nothing happens."""

    def newest(self) -> int:
        """Return the number of no event."""
        return 0

    def gauges(self, now: int) -> Gauges:
        """Return that nothing stands anywhere."""
        del now
        return Gauges()

    def happened(self, after: int, limit: int = 5_000) -> Happened:
        """Return that nothing happened."""
        del limit
        return Happened(after)


def test_the_page_has_every_metric_and_no_other() -> None:
    """By name and type."""
    text = Metrics(Nothing(), lambda: 0).scrape().decode()
    known = {(name, kind) for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, flags=re.MULTILINE)}
    told = set(re.findall(r"^\| `(calve_\w+)` \| (\w+) \|", PAGE.read_text(), flags=re.MULTILINE))
    assert told == {(name, kind) for name, kind in known if not name.endswith("_created")}
