from .allow_list import AllowList as AllowList
from .runtime import Http as Http
