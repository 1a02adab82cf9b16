# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""Logs of a job whose containers run: e2e/realnode runs this."""

import os
import unittest

import lockstep


class Logs(unittest.TestCase):
    def test_lines_of_all_tasks_come_as_they_are_written(self):
        client = lockstep.Client(namespace=os.environ["NAMESPACE"])
        script = "echo one; sleep 1; echo two; exit 0"
        pod = {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "sh", "image": "lockstep.dev/toolbox:dev", "imagePullPolicy": "Never", "command": ["sh", "-c", script]}],
            }
        }
        job = client.submit(lockstep.Framework("talks", [lockstep.Role("worker", 2, pod=pod, min_succeeded=2)], started=True))
        self.addCleanup(job.delete)
        for status in job.watch(timeout=120):
            if status.running == 2 or status.state.final:
                break
        lines = sorted(job.logs(follow=True))
        self.assertEqual(lines, ["[worker/0] one", "[worker/0] two", "[worker/1] one", "[worker/1] two"])
        self.assertEqual(list(job.logs(role="worker", task=1, tail=1)), ["[worker/1] two"])
        self.assertEqual(job.wait(timeout=120).state, lockstep.State.SUCCEEDED)


if __name__ == "__main__":
    unittest.main()
