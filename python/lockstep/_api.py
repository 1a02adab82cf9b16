# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""Requests to one cluster: whom they are sent to, how long they may take, and what is told when they fail."""

from __future__ import annotations

import json
import re
import socket
import time
from typing import Any, Callable, Iterator, Optional

import urllib3
from kubernetes import client as k8s
from kubernetes import config
from kubernetes.config import kube_config
from urllib3.exceptions import HTTPError, ReadTimeoutError

from .errors import LockstepError, Unreachable

GROUP, VERSION, PLURAL = "frameworkcontroller.microsoft.com", "v1", "frameworks"
# How long a connection, and an answer that is no stream, may take, in seconds.
_CONNECT, ANSWER = 10.0, 30.0
# How much later than it is due an answer may be.
SLACK = 10.0
# How long an API server that does not answer is tried again, and how long the pauses are: at first, and at most.
_PATIENCE, _FIRST_PAUSE, _LAST_PAUSE = 300.0, 0.5, 10.0
# How many logs are followed at the same time, each by a connection of its own.
MAX_LOGS = 100


class _Retry(urllib3.Retry):
    """Sends a request again whose connection broke, and none whose time is over: it would take that time once more."""

    def increment(self, method: Any = None, url: Any = None, response: Any = None, error: Any = None, *more: Any, **named: Any) -> urllib3.Retry:
        if isinstance(error, ReadTimeoutError):
            raise error
        return super().increment(method, url, response, error, *more, **named)


class Api:
    """Requests with the rights of a kubeconfig or, in a Pod, of its service account.

    The configuration is this object's own: other users of the Kubernetes client in the process keep theirs.
    """

    def __init__(self, context: Optional[str], kubeconfig: Optional[str]) -> None:
        configuration = k8s.Configuration()
        #: The namespace that is meant if none is named.
        self.namespace = _configure(configuration, context, kubeconfig)
        # A connection that was kept may be dead. Who waits tries more often, and looks at the time.
        configuration.retries = _Retry(total=1, respect_retry_after_header=False)
        configuration.connection_pool_maxsize = MAX_LOGS + 10
        self._client = k8s.ApiClient(configuration)
        self.jobs = k8s.CustomObjectsApi(self._client)
        self.core = k8s.CoreV1Api(self._client)

    def watch(self, namespace: str, name: str, version: str, seconds: int) -> Iterator[dict[str, Any]]:
        """Events of a Framework since a version, for so many seconds."""
        response = asked(
            "watch",
            self.jobs.list_namespaced_custom_object,
            GROUP,
            VERSION,
            namespace,
            PLURAL,
            field_selector=f"metadata.name={name}",
            resource_version=version,
            timeout_seconds=seconds,
            watch=True,
            _preload_content=False,
            timeout=seconds + SLACK,
        )
        for line in Stream(response, "watch"):
            try:
                event = json.loads(line)
            except ValueError as broken:
                raise Unreachable(f"can't watch it: an event broke off: {broken}") from broken
            if event["type"] == "ERROR":
                refused = event["object"]
                raise _refused("watch", refused.get("code"), refused.get("message"))
            yield event

    def log(self, pod: Any, container: str, timeout: float, **query: Any) -> Stream:
        """The log of a Pod. Query are the parameters of the API, such as sinceTime, which the Kubernetes client lacks."""
        response = asked(
            "read the log of",
            self._client.call_api,
            "/api/v1/namespaces/{namespace}/pods/{name}/log",
            "GET",
            path_params={"namespace": pod.metadata.namespace, "name": pod.metadata.name},
            query_params=[("container", container), *query.items()],
            header_params={"Accept": "*/*"},
            auth_settings=["BearerToken"],
            _return_http_data_only=True,
            _preload_content=False,
            timeout=timeout,
        )
        return Stream(response, "read the log of")


class BrokenOff(Unreachable):
    """An answer of which a part was read: there was no end of it."""


class Stream:
    """Lines of an answer, as they come. Leaving them, or their end, closes the connection."""

    def __init__(self, response: Any, what: str) -> None:
        self._response, self._what = response, what

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        try:
            for part in self._response.stream(amt=4096, decode_content=True):
                *lines, rest = (rest + part).split(b"\n")
                yield from lines
            if rest:
                yield rest
        except HTTPError as broken:
            raise BrokenOff(str(_unreachable(self._what, broken))) from broken
        finally:
            self._response.close()
            self._response.release_conn()

    def hang_up(self) -> None:
        """End it for another thread that reads it: to close the response would not wake that."""
        connection = getattr(self._response, "_connection", None)
        line = getattr(connection, "sock", None)
        if line is None:
            return
        try:
            socket.socket.shutdown(line, socket.SHUT_RDWR)
        except (OSError, TypeError):
            pass  # It has ended already, or is none of the standard library's: then it ends with its time.


class Patience:
    """Pauses between tries while the API server does not answer: each longer than the one before, and not for ever."""

    def __init__(self, deadline: Optional[float] = None, pause: Callable[[float], Any] = time.sleep) -> None:
        self._deadline, self._pause = deadline, pause
        self.answered()

    def answered(self) -> None:
        """The API server has answered: trouble from now on is a new one."""
        self._next = _FIRST_PAUSE
        self._since: Optional[float] = None

    def wait(self, trouble: Unreachable) -> None:
        """Wait before the next try, or raise what the trouble is if there has been too much of it."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if self._deadline is None and now - self._since > _PATIENCE:
            raise trouble
        self._pause(self._next if self._deadline is None else max(0.0, min(self._next, self._deadline - now)))
        self._next = min(2 * self._next, _LAST_PAUSE)


def asked(what: str, request: Callable[..., Any], *args: Any, timeout: float = ANSWER, **more: Any) -> Any:
    """The answer to a request, or a LockstepError that says in words what could not be done."""
    try:
        return request(*args, _request_timeout=(_CONNECT, timeout), **more)
    except k8s.ApiException as refused:
        try:
            message = json.loads(refused.body)["message"]
        except (TypeError, ValueError, KeyError):
            message = refused.reason
        raise _refused(what, refused.status, message) from refused
    except HTTPError as broken:
        raise _unreachable(what, broken) from broken


def _refused(what: str, code: Optional[int], message: Optional[str]) -> LockstepError:
    kind = Unreachable if code is not None and (code == 429 or code >= 500) else LockstepError
    return kind(f"can't {what} it: {message}", code)


def _unreachable(what: str, broken: HTTPError) -> Unreachable:
    # Errors of urllib3 begin with objects, which say nothing to people.
    reason = re.sub(r"^<[^>]*>: |^\w+\([^)]*\): ", "", str(getattr(broken, "reason", None) or broken))
    return Unreachable(f"can't {what} it: the API server does not answer: {reason}")


def _configure(configuration: Any, context: Optional[str], kubeconfig: Optional[str]) -> str:
    """Fill in the configuration, and return the namespace that is meant if none is named."""
    try:
        config.load_kube_config(config_file=kubeconfig, context=context, client_configuration=configuration)
        return _namespace_of(context, kubeconfig) or "default"
    except config.ConfigException as outside:
        if kubeconfig or context:
            raise LockstepError(str(outside)) from outside
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException:
            raise LockstepError(f"no cluster is configured: {outside}") from outside
        with open("/var/run/secrets/kubernetes.io/serviceaccount/namespace", encoding="utf-8") as file:
            return file.read().strip() or "default"


def _namespace_of(context: Optional[str], kubeconfig: Optional[str]) -> Optional[str]:
    """The namespace of the named context or, without a name, of the current one."""
    merged = kube_config.KubeConfigMerger(kubeconfig or kube_config.KUBE_CONFIG_DEFAULT_LOCATION).config
    loader = kube_config.KubeConfigLoader(config_dict=merged, active_context=context, config_base_path=None)
    namespace = loader.current_context["context"].get("namespace")
    return None if namespace is None else str(namespace)
