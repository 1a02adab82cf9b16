# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""The client, and the jobs that it knows."""

from __future__ import annotations

import html
import json
import queue
import threading
import time
from typing import Any, Iterator, Mapping, Optional, Union

from kubernetes import client as k8s
from kubernetes import config, watch

from .errors import JobFailed, LockstepError, WaitTimeout
from .spec import Framework
from .status import State, Status

_GROUP, _VERSION, _PLURAL = "frameworkcontroller.microsoft.com", "v1", "frameworks"
# How long one watch lasts before the next one begins, in seconds.
_WATCH = 60
# How many logs are followed at the same time.
_MAX_LOGS = 100


class Client:
    """Jobs of one namespace, with the rights of a kubeconfig or, in a Pod, of its service account."""

    def __init__(self, namespace: Optional[str] = None, context: Optional[str] = None, kubeconfig: Optional[str] = None) -> None:
        own = "default"
        try:
            config.load_kube_config(config_file=kubeconfig, context=context)
            contexts, active = config.list_kube_config_contexts(config_file=kubeconfig)
            chosen = next((c for c in contexts if c["name"] == context), active)
            own = chosen["context"].get("namespace") or own
        except config.ConfigException as outside:
            if kubeconfig or context:
                raise LockstepError(str(outside)) from outside
            try:
                config.load_incluster_config()
            except config.ConfigException:
                raise LockstepError(f"no cluster is configured: {outside}") from outside
            with open("/var/run/secrets/kubernetes.io/serviceaccount/namespace", encoding="utf-8") as file:
                own = file.read().strip() or own
        self.namespace = namespace or own
        self._jobs = k8s.CustomObjectsApi()
        self._core = k8s.CoreV1Api()

    def submit(self, job: Union[Framework, Mapping[str, Any]]) -> Job:
        """Create a job, from a Framework or from a manifest as a dict."""
        manifest = job.manifest() if isinstance(job, Framework) else dict(job)
        try:
            made = self._jobs.create_namespaced_custom_object(_GROUP, _VERSION, self.namespace, _PLURAL, manifest)
        except k8s.ApiException as refused:
            raise _told(refused, "submit") from refused
        return Job(self, made["metadata"]["name"])

    def job(self, name: str) -> Job:
        """A job that is there, by name."""
        found = Job(self, name)
        found.status()
        return found

    def jobs(self, selector: str = "") -> list[Status]:
        """All Frameworks of the namespace, or those with labels such as team=a."""
        try:
            listed = self._jobs.list_namespaced_custom_object(_GROUP, _VERSION, self.namespace, _PLURAL, label_selector=selector)
        except k8s.ApiException as refused:
            raise _told(refused, "list") from refused
        return [Status.of(item) for item in listed["items"]]


class Job:
    """A Framework. Client.submit and Client.job make it."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self._client.namespace

    def __repr__(self) -> str:
        return f"<Job {self.namespace}/{self.name}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        status = self.status()
        rows = "".join(
            f"<tr><td>{past.id}</td><td>{past.state}</td><td>{past.code}</td><td>{html.escape(past.reason)}</td></tr>" for past in status.history
        )
        table = f"<table><tr><th>attempt</th><th>end</th><th>code</th><th>why</th></tr>{rows}</table>" if rows else ""
        return f"<p>{html.escape(str(status))}</p>{table}"

    def manifest(self) -> dict[str, Any]:
        """The whole Framework, as the API server has it."""
        try:
            found = self._client._jobs.get_namespaced_custom_object(_GROUP, _VERSION, self.namespace, _PLURAL, self.name)
        except k8s.ApiException as refused:
            raise _told(refused, "read") from refused
        return dict(found)

    def status(self) -> Status:
        """What it is doing now."""
        return Status.of(self.manifest())

    def watch(self, timeout: Optional[float] = None) -> Iterator[Status]:
        """Each change of the status, the first one at once, until the job has ended.

        If it has not after timeout seconds, WaitTimeout is raised.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            manifest = self.manifest()
            status = Status.of(manifest)
            yield status
            if status.state.final:
                return
            left = _WATCH if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeout(f"{status} after {timeout}s", status)
            version, stream = manifest["metadata"]["resourceVersion"], watch.Watch()
            try:
                for event in stream.stream(
                    self._client._jobs.list_namespaced_custom_object,
                    _GROUP,
                    _VERSION,
                    self.namespace,
                    _PLURAL,
                    field_selector=f"metadata.name={self.name}",
                    resource_version=version,
                    timeout_seconds=max(1, int(min(left, _WATCH))),
                ):
                    if event["type"] == "DELETED":
                        raise LockstepError(f"{self.name} was deleted")
                    if event["type"] not in ("ADDED", "MODIFIED"):
                        continue
                    status = Status.of(event["object"])
                    yield status
                    if status.state.final:
                        return
                    if deadline is not None and time.monotonic() > deadline:
                        raise WaitTimeout(f"{status} after {timeout}s", status)
            except k8s.ApiException as refused:
                if refused.status != 410:  # The version is too old: read again.
                    raise _told(refused, "watch") from refused
            finally:
                stream.stop()

    def wait(self, state: Optional[State] = None, timeout: Optional[float] = None) -> Status:
        """Wait for a state or, without one, for the end.

        A job that ends otherwise than with success, or in another state than the one waited for, raises JobFailed;
        WaitTimeout is raised after timeout seconds.
        """
        wanted = state or State.SUCCEEDED
        last: Optional[Status] = None
        for last in self.watch(timeout):
            if last.state == wanted:
                return last
        assert last is not None  # watch yields at least once
        raise JobFailed(f"{last}: {last.message}" if last.message else str(last), last)

    def start(self) -> None:
        """Start a job that was submitted with started=False."""
        self._patch({"spec": {"executionType": "Start"}}, "start")

    def stop(self) -> None:
        """Stop it: its Pods end, and it is not retried."""
        self._patch({"spec": {"executionType": "Stop"}}, "stop")

    def delete(self) -> None:
        """Delete it, and all that belongs to it."""
        try:
            self._client._jobs.delete_namespaced_custom_object(
                _GROUP, _VERSION, self.namespace, _PLURAL, self.name, propagation_policy="Foreground"
            )
        except k8s.ApiException as refused:
            raise _told(refused, "delete") from refused

    def logs(self, role: Optional[str] = None, task: Optional[int] = None, follow: bool = False, tail: Optional[int] = None) -> Iterator[str]:
        """Lines of the logs of the tasks that have a Pod, each with its task before it: [worker/0] …

        With follow, lines come as they are written, from 100 tasks at most, until all of these have ended.
        """
        pods = self._pods(role, task)
        if not pods:
            raise LockstepError(f"{self.name} has no Pods with logs: they are made when it runs, and deleted when an attempt is over")
        if not follow:
            for pod in pods:
                yield from self._log(pod, False, tail)
            return
        if len(pods) > _MAX_LOGS:
            raise LockstepError(f"{len(pods)} tasks are too many to follow: at most {_MAX_LOGS}; name a role or a task")
        lines: queue.Queue[Optional[str]] = queue.Queue(maxsize=1000)

        def read(pod: Any) -> None:
            try:
                for line in self._log(pod, True, tail):
                    lines.put(line)
            except LockstepError as refused:
                lines.put(f"{_prefix(pod)} {refused}")
            finally:
                lines.put(None)

        for pod in pods:
            threading.Thread(target=read, args=(pod,), daemon=True).start()
        open_logs = len(pods)
        while open_logs:
            line = lines.get()
            if line is None:
                open_logs -= 1
            else:
                yield line

    def _pods(self, role: Optional[str], task: Optional[int]) -> list[Any]:
        uid = self.manifest()["metadata"]["uid"]
        try:
            listed = self._client._core.list_namespaced_pod(self.namespace, label_selector=f"FC_FRAMEWORK_NAME={self.name}")
        except k8s.ApiException as refused:
            raise _told(refused, "list the Pods") from refused
        found = []
        for pod in listed.items:
            notes = pod.metadata.annotations or {}
            if notes.get("FC_FRAMEWORK_UID") != uid or pod.status.phase == "Pending":
                continue
            if role is not None and notes.get("FC_TASKROLE_NAME") != role:
                continue
            if task is not None and notes.get("FC_TASK_INDEX") != str(task):
                continue
            found.append(pod)
        return sorted(found, key=lambda pod: (pod.metadata.annotations["FC_TASKROLE_NAME"], int(pod.metadata.annotations["FC_TASK_INDEX"])))

    def _log(self, pod: Any, follow: bool, tail: Optional[int]) -> Iterator[str]:
        wanted: dict[str, Any] = {"follow": follow, "container": pod.spec.containers[0].name, "_preload_content": False}
        if tail is not None:
            wanted["tail_lines"] = tail
        try:
            response = self._client._core.read_namespaced_pod_log(pod.metadata.name, self.namespace, **wanted)
        except k8s.ApiException as refused:
            raise _told(refused, "read a log") from refused
        rest = b""
        try:
            for part in response.stream(amt=4096, decode_content=True):
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    yield f"{_prefix(pod)} {line.decode(errors='replace')}"
            if rest:
                yield f"{_prefix(pod)} {rest.decode(errors='replace')}"
        finally:
            response.release_conn()

    def _patch(self, change: Mapping[str, Any], what: str) -> None:
        try:
            self._client._jobs.patch_namespaced_custom_object(_GROUP, _VERSION, self.namespace, _PLURAL, self.name, dict(change))
        except k8s.ApiException as refused:
            raise _told(refused, what) from refused


def _prefix(pod: Any) -> str:
    notes = pod.metadata.annotations
    return f"[{notes['FC_TASKROLE_NAME']}/{notes['FC_TASK_INDEX']}]"


def _told(refused: Any, what: str) -> LockstepError:
    """What the API server says, for people."""
    try:
        message = json.loads(refused.body)["message"]
    except (TypeError, ValueError, KeyError):
        message = refused.reason
    return LockstepError(f"can't {what} it: {message}")
