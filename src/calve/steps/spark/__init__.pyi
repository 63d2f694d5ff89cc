from .errors import brief as brief, cause as cause, name_hint as name_hint, position as position
from .progress import size as size
from .runtime import Spark as Spark
