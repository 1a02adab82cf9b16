# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""What a job is to be. For all that is not here, submit a manifest as a dict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence

API_VERSION = "frameworkcontroller.microsoft.com/v1"


@dataclass(frozen=True)
class Role:
    """A number of tasks that are alike, each of which is a Pod with one container.

    The attempt fails with the first task that fails, unless min_failed says otherwise: None is never. It succeeds
    when min_succeeded tasks of the role have; None is never, and then, as far as no role decides, it succeeds once
    every task of every role has ended, however.
    """

    name: str
    tasks: int
    image: str = ""
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    #: Requests and limits of each task, such as {"nvidia.com/gpu": "1", "cpu": "4"}.
    resources: Mapping[str, str] = field(default_factory=dict)
    min_failed: Optional[int] = 1
    min_succeeded: Optional[int] = None
    #: How often one task is run again by itself.
    max_retries: int = 0
    #: A whole Pod template instead of image, command, args, env and resources.
    pod: Optional[Mapping[str, Any]] = None

    def manifest(self) -> dict[str, Any]:
        """The role as an entry of spec.taskRoles."""
        pod: Any = self.pod
        if pod is None:
            container: dict[str, Any] = {"name": self.name, "image": self.image}
            if self.command:
                container["command"] = list(self.command)
            if self.args:
                container["args"] = list(self.args)
            if self.env:
                container["env"] = [{"name": k, "value": v} for k, v in self.env.items()]
            if self.resources:
                container["resources"] = {"requests": dict(self.resources), "limits": dict(self.resources)}
            pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        return {
            "name": self.name,
            "taskNumber": self.tasks,
            "frameworkAttemptCompletionPolicy": {
                "minFailedTaskCount": -1 if self.min_failed is None else self.min_failed,
                "minSucceededTaskCount": -1 if self.min_succeeded is None else self.min_succeeded,
            },
            "task": {"retryPolicy": {"maxRetryCount": self.max_retries}, "pod": pod},
        }


@dataclass(frozen=True)
class Framework:
    """A job of several roles. Its tasks start together or not at all, unless gang is False."""

    name: str
    roles: Sequence[Role]
    gang: bool = True
    #: How often the whole job is run again if an attempt fails.
    max_retries: int = 0
    #: Have failures that are known not to be the job's own not count, and permanent ones not retried.
    fancy_retries: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    #: False creates it, and leaves starting to start().
    started: bool = True

    def manifest(self) -> dict[str, Any]:
        """The job as the API server takes it."""
        spec: dict[str, Any] = {
            "executionType": "Start" if self.started else "Create",
            "retryPolicy": {"fancyRetryPolicy": self.fancy_retries, "maxRetryCount": self.max_retries},
            "taskRoles": [role.manifest() for role in self.roles],
        }
        if self.gang:
            spec["gang"] = {}
        metadata: dict[str, Any] = {"name": self.name}
        if self.labels:
            metadata["labels"] = dict(self.labels)
        return {"apiVersion": API_VERSION, "kind": "Framework", "metadata": metadata, "spec": spec}
