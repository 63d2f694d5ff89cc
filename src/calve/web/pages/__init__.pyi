from .routers import ROUTERS as ROUTERS
from .starts import start_form as start_form
