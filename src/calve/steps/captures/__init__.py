"""The steps of incremental processing: IpCapture, IpCommit and the older ICDC.

`declared_in` tells the application which tables a workflow declares as targets.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
