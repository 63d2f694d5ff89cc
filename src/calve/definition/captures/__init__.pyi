from .completion import complete as complete
from .order import check_capture_order as check_capture_order
from .rows import CapturedRows as CapturedRows, Effect as Effect, Use as Use
