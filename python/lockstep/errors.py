# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""What can go wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .status import Status


class LockstepError(Exception):
    """Something that the cluster refused, or that can't be done; the message says why."""

    def __init__(self, message: str, code: Optional[int] = None) -> None:
        super().__init__(message)
        #: The HTTP status of the API server's refusal. None if it has not refused anything.
        self.code = code


class Unreachable(LockstepError):
    """The API server gave no answer, or said that it can't now: the same may succeed later."""


class WaitTimeout(LockstepError):
    """The time is over, and the job has not got to where it was waited for."""

    def __init__(self, message: str, status: Status) -> None:
        super().__init__(message)
        #: The job as it was then.
        self.status = status


class JobFailed(LockstepError):
    """The job ended in another way than with success."""

    def __init__(self, message: str, status: Status) -> None:
        super().__init__(message)
        #: The job as it ended.
        self.status = status
