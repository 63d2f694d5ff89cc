"""Creates, reads and deletes the jobs of a cluster with the Kubernetes client."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calve.engine import State
from calve.errors import StepFailed
from calve.settings import KubernetesSettings
from calve.steps.failures import fatal
from calve.steps.kubernetes.manifests import CONTAINER

_SECONDS = (10, 30)
"""The timeouts for a connection, and for a response."""
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_CHUNK = 65_536


class ClusterSilent(StepFailed):
    """The cluster does not answer, or not now."""


class Jobs:
    """The jobs of one namespace, as plain JSON."""

    def __init__(self, cluster: KubernetesSettings, namespace: str) -> None:
        self._namespace = namespace
        self._client = _client(cluster)
        from kubernetes import client

        self._batch = client.BatchV1Api(self._client)
        self._core = client.CoreV1Api(self._client)

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def create(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Create a job and return it; None if a job with that name exists."""
        return self._asked(self._batch.create_namespaced_job, {409}, body=body)

    def read(self, name: str) -> Mapping[str, Any] | None:
        """Return a job; None if it does not exist."""
        return self._asked(self._batch.read_namespaced_job, {404}, name=name)

    def pod(self, name: str) -> Mapping[str, Any] | None:
        """Return the newest pod of a job; None if there is none."""
        found = self._asked(self._core.list_namespaced_pod, set(), label_selector=f"job-name={name}") or {}
        pods: list[Mapping[str, Any]] = found.get("items") or []
        return max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), default=None)

    def log(self, pod: str) -> Iterator[bytes]:
        """Yield what a pod's program printed."""
        with self._errors():
            answer: Any = self._core.read_namespaced_pod_log(
                pod, self._namespace, container=CONTAINER, _preload_content=False, _request_timeout=_SECONDS
            )
            yield from answer.stream(_CHUNK)

    def delete(self, name: str) -> None:
        """Delete a job after its pods; it need not exist, and may still exist when this returns."""
        policy = "Foreground"
        self._asked(self._batch.delete_namespaced_job, {404}, name=name, propagation_policy=policy)

    def _asked(self, call: Callable[..., Any], fine: set[int], **arguments: Any) -> Mapping[str, Any] | None:
        """Call the client and return the response's JSON; None if its status is one of ``fine``."""
        from kubernetes.client.exceptions import ApiException

        with self._errors():
            try:
                answer = call(namespace=self._namespace, _preload_content=False, _request_timeout=_SECONDS, **arguments)
            except ApiException as error:
                if error.status in fine:
                    return None
                raise
            found: Mapping[str, Any] = json.loads(answer.data)
            return found

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what the client raises into failures."""
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            yield
        except ApiException as error:
            said = f"The cluster answered {error.status} {error.reason}: {_message(error.body)}"
            if (error.status or 0) >= 500 or error.status in {0, 408, 429}:
                raise ClusterSilent(said, state=State.PLATFORM_ERROR) from None
            raise fatal(said) from None
        except HTTPError as error:
            raise ClusterSilent(f"The cluster does not answer: {error}", state=State.PLATFORM_ERROR) from None


def _client(cluster: KubernetesSettings) -> Any:
    """Return a client, configured by the kubeconfig or by the service account of the pod that calve runs in."""
    try:
        from kubernetes import client, config
    except ModuleNotFoundError:
        raise fatal("The Kubernetes client is not installed.", remedy="pip install 'calve[kubernetes]'.") from None
    chosen = client.Configuration()
    chosen.retries = 0  # the runtime polls again anyway
    loading: Any = config
    try:
        if cluster.config is None and cluster.context is None and _ACCOUNT.exists():
            loading.load_incluster_config(client_configuration=chosen)
        else:
            file = os.fspath(cluster.config) if cluster.config else None
            loading.load_kube_config(config_file=file, context=cluster.context, client_configuration=chosen)
    except config.ConfigException as error:
        raise fatal(
            f"There is no Kubernetes cluster to use: {error}",
            remedy="Name a kubeconfig in the settings: [kubernetes] config.",
        ) from None
    return client.ApiClient(chosen)


def _message(body: Any) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, LookupError, TypeError):
        return str(body or "")[:500]
