# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""What a job is doing, in the words that kubectl lockstep has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Mapping, Optional

# Codes of ends that somebody asked for: the Framework was stopped, the attempt was over, the task removed.
_STOPPED = {-210, -220, -230}


class State(str, Enum):
    """Where a job is in its life."""

    NOT_STARTED = "NotStarted"
    CREATING = "Creating"
    PREPARING = "Preparing"
    RUNNING = "Running"
    ENDING = "Ending"
    RETRYING = "Retrying"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"

    def __str__(self) -> str:
        return self.value

    @property
    def final(self) -> bool:
        """Whether a job in this state stays in it."""
        return self in (State.SUCCEEDED, State.FAILED, State.STOPPED)


_DURING = {
    "AttemptCreationRequested": State.CREATING,
    "AttemptPreparing": State.PREPARING,
    "AttemptRunning": State.RUNNING,
    "AttemptDeletionPending": State.ENDING,
    "AttemptDeletionRequested": State.ENDING,
    "AttemptDeleting": State.ENDING,
    "AttemptCompleted": State.RETRYING,
}


@dataclass(frozen=True)
class Attempt:
    """An attempt that is over."""

    id: int
    state: State
    code: int
    #: The name of the code, or what disrupted the attempt: Preempted, NodeLost, Evicted.
    reason: str
    started: Optional[datetime]
    ended: Optional[datetime]


@dataclass(frozen=True)
class Status:
    """A job at one moment."""

    name: str
    state: State
    #: The number of the attempt, from 0.
    attempt: int
    running: int
    total: int
    #: Why it does not run, or what it waits for. Empty if it waits for nothing.
    waiting: str
    #: The code of the end of the last attempt, and what it means. None and empty before.
    code: Optional[int]
    message: str
    history: tuple[Attempt, ...]

    def __str__(self) -> str:
        text = f"{self.name}: {self.state}, attempt {self.attempt}, {self.running}/{self.total} running"
        if self.waiting:
            text += f", waits for {self.waiting}"
        if self.code is not None:
            text += f", code {self.code}"
        return text

    @classmethod
    def of(cls, manifest: Mapping[str, Any], now: Optional[datetime] = None) -> Status:
        """The status of a Framework, from its JSON. Now is the time, by which the wait for a retry is told."""
        spec, status = manifest["spec"], manifest.get("status") or {}
        attempt = status.get("attemptStatus") or {}
        end = attempt.get("completionStatus") or {}
        tasks = status.get("tasks") or {}
        state = _state(spec, status, end)
        return cls(
            name=manifest["metadata"]["name"],
            state=state,
            attempt=attempt.get("id", 0),
            running=tasks.get("running", 0),
            total=tasks.get("total", sum(role["taskNumber"] for role in spec.get("taskRoles", []))),
            waiting=_waiting(state, status, now or datetime.now(timezone.utc)),
            code=end.get("code"),
            message=end.get("diagnostics") or end.get("phrase") or "",
            history=tuple(_past(record) for record in status.get("history") or []),
        )


def _state(spec: Mapping[str, Any], status: Mapping[str, Any], end: Mapping[str, Any]) -> State:
    state = status.get("state", "AttemptCreationPending")
    if state == "Completed":
        return _ended(end)
    if state == "AttemptCreationPending":
        return State.NOT_STARTED if spec.get("executionType") == "Create" else State.CREATING
    delay = (status.get("retryPolicyStatus") or {}).get("retryDelaySec")
    if state == "AttemptCompleted" and delay is None and (end.get("type") or {}).get("name") == "Succeeded":
        return State.ENDING  # what follows is yet to be decided, and mostly nothing does
    return _DURING.get(state, State.RUNNING)


def _ended(end: Mapping[str, Any]) -> State:
    if (end.get("type") or {}).get("name") == "Succeeded":
        return State.SUCCEEDED
    return State.STOPPED if end.get("code") in _STOPPED else State.FAILED


def _waiting(state: State, status: Mapping[str, Any], now: datetime) -> str:
    """What holds it up, in the words of kubectl lockstep: internal/view has them, and both read the same examples."""
    if not status:
        return "lockstep-controller" if state == State.CREATING else ""
    if status.get("state") == "Completed":
        return ""
    delay = (status.get("retryPolicyStatus") or {}).get("retryDelaySec")
    since = _time(status.get("transitionTime"))
    if status.get("state") == "AttemptCompleted" and delay is not None and since is not None:
        return f"next attempt in {_span(min(max(0.0, delay - (now - since).total_seconds()), float(delay)))}"
    conditions = {c["type"]: c for c in status.get("conditions") or []}
    for kind, value, before in (("Admitted", "False", "Kueue: "), ("TasksBlocked", "True", ""), ("GangScheduled", "False", "")):
        condition = conditions.get(kind)
        if condition and condition["status"] == value:
            return f"{before}{condition['reason']}"
    for waiting in status.get("waiting") or []:
        return f"{waiting['reason']} ({waiting['tasks']})"
    return ""


def _span(seconds: float) -> str:
    """A time in whole seconds, as Go writes it: 1h0m5s."""
    minutes, second = divmod(int(seconds + 0.5), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minute}m{second}s"
    return f"{minute}m{second}s" if minute else f"{second}s"


def _past(record: Mapping[str, Any]) -> Attempt:
    end = record.get("completionStatus") or {}
    return Attempt(
        id=record.get("id", 0),
        state=_ended(end),
        code=end.get("code", 0),
        reason=end.get("disruption") or end.get("phrase") or "",
        started=_time(record.get("startTime")),
        ended=_time(record.get("completionTime")),
    )


def _time(text: Optional[str]) -> Optional[datetime]:
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
