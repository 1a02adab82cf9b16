# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""Following the logs of the tasks of a job: of those that run, and of those that begin to."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections import Counter
from datetime import datetime, timezone
from typing import Any, Callable, Iterator, Optional, Union

from ._api import MAX_LOGS, Api, BrokenOff, Patience, Stream, asked
from .errors import LockstepError, Unreachable

# How often Pods are looked for, and logs that broke off are opened again, in seconds.
_LOOK = 2.0
# After how long without a line a log is opened again: its connection may be dead.
_QUIET = 60.0
# How often the rest of a log is asked for whose Pod has ended.
_TRIES = 3

# What a line begins with if times are asked for: RFC 3339, with nanoseconds.
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d) ?")


def prefix(pod: Any) -> str:
    """What stands before each line of a task."""
    notes = pod.metadata.annotations
    return f"[{notes['FC_TASKROLE_NAME']}/{notes['FC_TASK_INDEX']}]"


def container(pod: Any) -> str:
    """The container whose log is that of the task."""
    return str(pod.spec.containers[0].name)


def _written(seconds: float) -> str:
    """A time as the API takes it, which has no finer one than seconds."""
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Place:
    """How far a log has been read, by the times of its lines. It knows which lines are new when the log is opened again."""

    def __init__(self) -> None:
        #: When the log was first opened, in seconds.
        self.opened: Optional[float] = None
        self._second = 0
        # The lines of the last second that were read, and those of them that are yet to be seen again.
        self._read: Counter[int] = Counter()
        self._again: Counter[int] = Counter()

    def since(self) -> Optional[str]:
        """From when on the log is to be opened again: the second of the last line. None is from its beginning."""
        self._again = self._read.copy()
        return _written(self._second) if self._second else None

    def take(self, line: bytes) -> Optional[bytes]:
        """The text of a line, or None if it was read before."""
        found = _STAMP.match(line)
        if not found:
            return line
        when, zone = found[1].decode(), found[2].decode()
        second = int(datetime.fromisoformat(when + zone.replace("Z", "+00:00")).timestamp())
        if second > self._second:
            self._second, self._read, self._again = second, Counter(), Counter()
        mark = hash(line)
        if self._again[mark] > 0:
            self._again[mark] -= 1
            return None
        # Lines of two streams may be a little out of order.
        if second == self._second:
            self._read[mark] += 1
        return line[found.end() :]


class _End:
    """Stands behind the last line."""


class Follower:
    """Follows logs by threads, one for each log. Lines are what they have read, until the job is over.

    Look returns the Pods that have logs, and whether the job is over.
    """

    def __init__(self, api: Api, look: Callable[[], tuple[list[Any], bool]], nothing: LockstepError, tail: Optional[int]) -> None:
        self._api, self._look, self._nothing, self._tail = api, look, nothing, tail
        self._told: queue.Queue[Union[str, LockstepError, _End]] = queue.Queue(maxsize=1000)
        self._left = threading.Event()
        self._lock = threading.Lock()
        self._streams: set[Stream] = set()

    def lines(self) -> Iterator[str]:
        """All lines, as they come. To leave them ends the threads and their connections."""
        threading.Thread(target=self._guarded, args=(self._find,), daemon=True, name="lockstep-logs").start()
        try:
            while True:
                told = self._told.get()
                if isinstance(told, _End):
                    return
                if isinstance(told, LockstepError):
                    raise told
                yield told
        finally:
            self._left.set()
            with self._lock:
                for stream in self._streams:
                    stream.hang_up()

    def _tell(self, told: Union[str, LockstepError, _End]) -> None:
        """Put it where lines() finds it, unless that was left."""
        while not self._left.is_set():
            try:
                self._told.put(told, timeout=0.2)
                return
            except queue.Full:
                continue

    def _guarded(self, run: Callable[..., None], *args: Any) -> None:
        """Run a thread: what goes wrong in it is raised by lines(), unless that was left."""
        try:
            run(*args)
        except LockstepError as failed:
            self._tell(failed)
        except Exception as failed:  # A thread that died silently would look like an end.
            self._tell(LockstepError(f"can't follow the logs: {failed!r}"))

    def _find(self) -> None:
        """Look for Pods until the job is over, and have each log read."""
        followed: dict[str, threading.Thread] = {}
        patience = Patience(pause=self._left.wait)
        while not self._left.is_set():
            try:
                pods, over = self._look()
            except Unreachable as trouble:
                patience.wait(trouble)
                continue
            patience.answered()
            if over and not pods and not followed:
                raise self._nothing
            for pod in pods:
                if pod.metadata.uid in followed:
                    continue
                if len(followed) >= MAX_LOGS and len(pods) > MAX_LOGS:
                    raise LockstepError(f"{len(pods)} tasks are too many to follow: at most {MAX_LOGS}; name a role or a task")
                reader = threading.Thread(target=self._guarded, args=(self._read, pod), daemon=True, name="lockstep-log")
                followed[pod.metadata.uid] = reader
                reader.start()
            if over:
                for reader in followed.values():
                    reader.join()
                break
            self._left.wait(_LOOK)
        self._tell(_End())

    def _read(self, pod: Any) -> None:
        """Read a log until its task has ended. Where it breaks off, it is opened again behind the last line."""
        place, patience, left = Place(), Patience(pause=self._left.wait), _TRIES
        # What the log broke off by, until it is read to its end.
        cut: Optional[BrokenOff] = None
        while not self._left.is_set():
            whole = False
            trouble: Optional[LockstepError] = None
            try:
                for line in self._open(pod, place):
                    text = place.take(line)
                    if text is not None:
                        self._tell(f"{prefix(pod)} {text.decode(errors='replace')}")
                whole, cut = True, None
            except LockstepError as failed:
                trouble = failed
                if isinstance(failed, BrokenOff):
                    cut = failed
            if self._left.is_set():
                return
            if trouble is not None and trouble.code in (401, 403):
                self._tell(f"{prefix(pod)} {trouble}")
                return
            try:
                gone, ended = self._fate(pod)
                if ended and whole or gone and cut is None:
                    return
                left -= ended
                if gone or not left:
                    self._tell(f"{prefix(pod)} the end of the log is missing: {cut if gone else trouble}")
                    return
                patience.answered()
                self._left.wait(_LOOK)
            except Unreachable as failed:
                patience.wait(trouble if isinstance(trouble, Unreachable) else failed)

    def _open(self, pod: Any, place: Place) -> Iterator[bytes]:
        since, query = place.since(), {"follow": "true", "timestamps": "true"}
        if since is not None:
            query["sinceTime"] = since
        elif self._tail is not None and place.opened is not None:
            # All that was written since then is new, however many lines.
            query["sinceTime"] = _written(place.opened)
        elif self._tail is not None:
            query["tailLines"] = str(self._tail)
        now = time.time()
        stream = self._api.log(pod, container(pod), _QUIET, **query)
        if place.opened is None:
            place.opened = now
        with self._lock:
            self._streams.add(stream)
            if self._left.is_set():
                stream.hang_up()
        try:
            yield from stream
        finally:
            with self._lock:
                self._streams.discard(stream)

    def _fate(self, pod: Any) -> tuple[bool, bool]:
        """Whether a Pod is gone, and whether its container has ended for good."""
        try:
            now = asked("read a Pod", self._api.core.read_namespaced_pod, pod.metadata.name, pod.metadata.namespace)
        except LockstepError as refused:
            if refused.code == 404:
                return True, True
            raise
        return now.metadata.uid != pod.metadata.uid, _ended(now)


def _ended(pod: Any) -> bool:
    if pod.status.phase in ("Succeeded", "Failed"):
        return True
    for status in pod.status.container_statuses or []:
        if status.name == container(pod) and status.state and status.state.terminated:
            policy = pod.spec.restart_policy
            return policy == "Never" or bool(policy == "OnFailure" and status.state.terminated.exit_code == 0)
    return False
