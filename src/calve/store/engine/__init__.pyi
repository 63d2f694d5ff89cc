from .events import SqlPositions as SqlPositions, moved as moved, read_events as read_events
from .rows import TRIGGER as TRIGGER, VERSION as VERSION, attempt_of as attempt_of, times_of as times_of
from .signals import waits_of as waits_of
from .state import SqlEngineState as SqlEngineState
from .triggers import SqlTriggerState as SqlTriggerState
