from .runtime import Kubernetes as Kubernetes
