from .captures import SqlCaptureState as SqlCaptureState
from .deliveries import SqlDeliveryState as SqlDeliveryState
from .lag_samples import SqlLagSamples as SqlLagSamples
from .lineage import SqlLineage as SqlLineage
