from .captures import SqlCaptureState as SqlCaptureState, SqlDeliveryState as SqlDeliveryState
from .engine import SqlEngineState as SqlEngineState, SqlTriggerState as SqlTriggerState
from .store import Store as Store, open_store as open_store
