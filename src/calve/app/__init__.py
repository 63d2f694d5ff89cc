"""The composition root: the only package that knows every part, and puts them together."""

from calve.app.boundaries import Boundary, boundaries_of
from calve.app.capturing import captures_on, deliveries_on, has_closed_tables, open_captures, open_deliveries, open_lake
from calve.app.clocks import now_ms, utc_now
from calve.app.entrance import bootstrap_on, entrance_on, office_on
from calve.app.following import Follower, test_message
from calve.app.ids import new_id, new_uuid
from calve.app.processes import is_gone, this_process
from calve.app.secret_store import secret_table_on, secrets_on
from calve.app.web import web_on
from calve.app.workplace import Workplace, open_workplace, patiently, tools_on

__all__ = [
    "Boundary",
    "Follower",
    "Workplace",
    "bootstrap_on",
    "boundaries_of",
    "captures_on",
    "deliveries_on",
    "entrance_on",
    "has_closed_tables",
    "is_gone",
    "new_id",
    "new_uuid",
    "now_ms",
    "office_on",
    "open_captures",
    "open_deliveries",
    "open_lake",
    "open_workplace",
    "patiently",
    "secret_table_on",
    "secrets_on",
    "test_message",
    "this_process",
    "tools_on",
    "utc_now",
    "web_on",
]
