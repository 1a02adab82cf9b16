# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""Submit, watch and stop distributed jobs that Lockstep runs on Kubernetes.

    import lockstep

    client = lockstep.Client()
    job = client.submit(lockstep.Framework("train", [
        lockstep.Role("worker", tasks=4, image="example.com/trainer:1", resources={"nvidia.com/gpu": "1"}),
    ]))
    for line in job.logs(follow=True):
        print(line)
    job.wait()
"""

from .client import Client, Job
from .errors import JobFailed, LockstepError, Unreachable, WaitTimeout
from .spec import Framework, Role
from .status import Attempt, State, Status

__all__ = [
    "Attempt",
    "Client",
    "Framework",
    "Job",
    "JobFailed",
    "LockstepError",
    "Role",
    "State",
    "Status",
    "Unreachable",
    "WaitTimeout",
]
