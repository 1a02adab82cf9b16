# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""The client, and the jobs that it knows."""

from __future__ import annotations

import html
import time
from dataclasses import replace
from typing import Any, Iterator, Mapping, Optional, Union

from ._api import ANSWER, GROUP, PLURAL, SLACK, VERSION, Api, Patience, asked
from ._logs import Follower, container, prefix
from .errors import JobFailed, LockstepError, Unreachable, WaitTimeout
from .spec import Framework
from .status import State, Status

# How long one watch lasts before the next one begins, in seconds.
_WATCH = 60.0


class Client:
    """Jobs of one namespace, with the rights of a kubeconfig or, in a Pod, of its service account."""

    def __init__(self, namespace: Optional[str] = None, context: Optional[str] = None, kubeconfig: Optional[str] = None) -> None:
        self._api = Api(context, kubeconfig)
        self.namespace = namespace or self._api.namespace

    def submit(self, job: Union[Framework, Mapping[str, Any]]) -> Job:
        """Create a job, from a Framework or from a manifest as a dict."""
        manifest = job.manifest() if isinstance(job, Framework) else dict(job)
        made = asked("submit", self._api.jobs.create_namespaced_custom_object, GROUP, VERSION, self.namespace, PLURAL, manifest)
        return Job(self, made["metadata"]["name"])

    def job(self, name: str) -> Job:
        """A job that is there, by name."""
        found = Job(self, name)
        found.status()
        return found

    def jobs(self, selector: str = "") -> list[Status]:
        """All Frameworks of the namespace, or those with labels such as team=a."""
        listed = asked("list", self._api.jobs.list_namespaced_custom_object, GROUP, VERSION, self.namespace, PLURAL, label_selector=selector)
        return [Status.of(item) for item in listed["items"]]


class Job:
    """A Framework. Client.submit and Client.job make it."""

    def __init__(self, client: Client, name: str) -> None:
        self._api, self._namespace = client._api, client.namespace
        self.name = name

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self._namespace

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
        return self._manifest(ANSWER)

    def status(self) -> Status:
        """What it is doing now."""
        return Status.of(self.manifest())

    def watch(self, timeout: Optional[float] = None) -> Iterator[Status]:
        """The status, at once and at each change of it, until the job has ended.

        If it has not after timeout seconds, WaitTimeout is raised. An API server that does not answer is asked again
        until then or, without a timeout, for five minutes.
        """
        last: Optional[Status] = None
        for manifest in self._changes(timeout):
            if manifest is None:
                raise LockstepError(f"{self.name} was deleted")
            before, last = last, Status.of(manifest)
            if before is None or _timeless(last) != _timeless(before):
                yield last
            if last.state.final:
                return
        assert last is not None and timeout is not None  # _changes begins with one, and ends for a timeout alone
        raise WaitTimeout(f"{last} after {timeout}s", last)

    def wait(self, state: Optional[State] = None, timeout: Optional[float] = None) -> Status:
        """Wait for a state or, without one, for success.

        A job that has succeeded has been in all states before that, as far as anybody waits for them: the status
        that is returned then says Succeeded. One that ends otherwise raises JobFailed; WaitTimeout is raised after
        timeout seconds.
        """
        wanted = state or State.SUCCEEDED
        last: Optional[Status] = None
        for last in self.watch(timeout):
            if last.state == wanted or last.state == State.SUCCEEDED and not wanted.final:
                return last
        assert last is not None  # watch yields at least once
        raise JobFailed(f"{last}: {last.message}" if last.message else str(last), last)

    def start(self) -> None:
        """Start a job that was submitted with started=False."""
        self._patch({"spec": {"executionType": "Start"}}, "start")

    def stop(self) -> None:
        """Stop it: its Pods end, and it is not retried."""
        self._patch({"spec": {"executionType": "Stop"}}, "stop")

    def delete(self, wait: bool = True, timeout: Optional[float] = None) -> None:
        """Delete it, and all that belongs to it, and wait until it is gone: then nothing of it runs.

        If it is still there after timeout seconds, WaitTimeout is raised.
        """
        manifest = self.manifest()
        uid = manifest["metadata"]["uid"]
        asked(
            "delete",
            self._api.jobs.delete_namespaced_custom_object,
            GROUP,
            VERSION,
            self.namespace,
            PLURAL,
            self.name,
            body={"propagationPolicy": "Foreground", "preconditions": {"uid": uid}},
        )
        if not wait:
            return
        for changed in self._changes(timeout, uid):
            if changed is None:
                return
            manifest = changed
        status = Status.of(manifest)
        raise WaitTimeout(f"{status}, is not gone after {timeout}s", status)

    def logs(self, role: Optional[str] = None, task: Optional[int] = None, follow: bool = False, tail: Optional[int] = None) -> Iterator[str]:
        """Lines of the logs of the tasks that have begun, each with its task before it: [worker/0] …

        With follow, lines come as they are written, also of tasks that begin later or are retried, until the job has
        ended; from 100 tasks at most. A log that can't be had is told as a line.
        """
        uid = self.manifest()["metadata"]["uid"]
        nothing = LockstepError(f"{self.name} has no Pods with logs: they are made when it runs, and deleted when an attempt is over")
        if follow:
            yield from Follower(self._api, lambda: self._look(uid, role, task), nothing, tail).lines()
            return
        pods = self._pods(uid, role, task)
        if not pods:
            raise nothing
        query = {} if tail is None else {"tailLines": str(tail)}
        for pod in pods:
            try:
                for line in self._api.log(pod, container(pod), ANSWER, **query):
                    yield f"{prefix(pod)} {line.decode(errors='replace')}"
            except LockstepError as refused:
                yield f"{prefix(pod)} {refused}"

    def _changes(self, timeout: Optional[float], uid: Optional[str] = None) -> Iterator[Optional[dict[str, Any]]]:
        """Each manifest that the API server tells of, the present one first. None says that the job is gone, and is the last.

        It ends when the time is over.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        patience, begun = Patience(deadline), False
        while True:
            left = _WATCH if deadline is None else deadline - time.monotonic()
            if begun and left <= 0:
                return
            try:
                manifest = self._manifest(min(ANSWER, max(0.0, left) + SLACK))
                if uid is None:
                    uid = manifest["metadata"]["uid"]
                if manifest["metadata"]["uid"] != uid:
                    yield None
                    return
                patience.answered()
                begun = True
                yield manifest
                left = _WATCH if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    return
                seconds = max(1, int(min(left, _WATCH)))
                for event in self._api.watch(self.namespace, self.name, manifest["metadata"]["resourceVersion"], seconds):
                    if event["type"] == "DELETED" or event["object"]["metadata"].get("uid", uid) != uid:
                        yield None
                        return
                    if event["type"] in ("ADDED", "MODIFIED"):
                        yield event["object"]
                    if deadline is not None and time.monotonic() > deadline:
                        return
            except Unreachable as trouble:
                if not begun and deadline is not None and time.monotonic() >= deadline:
                    raise
                patience.wait(trouble)
            except LockstepError as refused:
                if refused.code == 404 and uid is not None:
                    yield None
                    return
                if refused.code != 410:  # The version is too old: read again.
                    raise

    def _look(self, uid: str, role: Optional[str], task: Optional[int]) -> tuple[list[Any], bool]:
        """The Pods that have logs, and whether the job is over."""
        try:
            manifest = self.manifest()
        except LockstepError as refused:
            if refused.code != 404:
                raise
            return [], True
        if manifest["metadata"]["uid"] != uid:
            return [], True
        return self._pods(uid, role, task), Status.of(manifest).state.final

    def _pods(self, uid: str, role: Optional[str], task: Optional[int]) -> list[Any]:
        listed = asked("list the Pods of", self._api.core.list_namespaced_pod, self.namespace, label_selector=f"FC_FRAMEWORK_NAME={self.name}")
        found = []
        for pod in listed.items:
            notes = pod.metadata.annotations or {}
            if notes.get("FC_FRAMEWORK_UID") != uid or pod.status.phase in (None, "", "Pending"):
                continue
            if role is not None and notes.get("FC_TASKROLE_NAME") != role:
                continue
            if task is not None and notes.get("FC_TASK_INDEX") != str(task):
                continue
            found.append(pod)
        return sorted(found, key=lambda pod: (pod.metadata.annotations["FC_TASKROLE_NAME"], int(pod.metadata.annotations["FC_TASK_INDEX"])))

    def _manifest(self, timeout: float) -> dict[str, Any]:
        return dict(
            asked("read", self._api.jobs.get_namespaced_custom_object, GROUP, VERSION, self.namespace, PLURAL, self.name, timeout=timeout)
        )

    def _patch(self, change: Mapping[str, Any], what: str) -> None:
        asked(what, self._api.jobs.patch_namespaced_custom_object, GROUP, VERSION, self.namespace, PLURAL, self.name, dict(change))


def _timeless(status: Status) -> Status:
    """A status without the time to the next attempt, which changes by itself."""
    return replace(status, waiting="") if status.state == State.RETRYING else status
