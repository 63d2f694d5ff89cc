"""The Kubernetes step: runs a container as a job on a cluster.

Import only the runtime.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
