from .check import dry_run as dry_run
from .render import rendered as rendered
from .resolution import resolve as resolve
