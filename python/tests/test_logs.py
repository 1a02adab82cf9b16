# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""Logs of a job whose containers run: e2e/realnode runs this."""

import os
import tempfile
import unittest

import lockstep


class Logs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_lines_of_all_tasks_come_as_they_are_written(self):
        client = lockstep.Client(namespace=os.environ["NAMESPACE"])
        # The tasks end when the test says so: Pods are deleted when the last one has ended.
        script = "echo one; sleep 1; echo two; until [ -e /tmp/end ]; do sleep 0.2; done; echo three"
        pod = {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "sh",
                        "image": "lockstep.dev/toolbox:dev",
                        "imagePullPolicy": "Never",
                        "command": ["sh", "-c", script],
                        "volumeMounts": [{"name": "end", "mountPath": "/tmp"}],
                    }
                ],
                "volumes": [{"name": "end", "hostPath": {"path": self.folder.name}}],
            }
        }
        job = client.submit(lockstep.Framework("talks", [lockstep.Role("worker", 2, pod=pod, min_succeeded=2)]))
        self.addCleanup(job.delete)
        lines, got = job.logs(follow=True), []
        for line in lines:
            got.append(line)
            if len(got) == 4:
                self.assertEqual(list(job.logs(role="worker", task=1, tail=1)), ["[worker/1] two"])
                with open(os.path.join(self.folder.name, "end"), "w", encoding="utf-8"):
                    pass
        self.assertEqual(sorted(got), [f"[worker/{task}] {line}" for task in (0, 1) for line in ("one", "three", "two")])
        self.assertEqual(job.wait(timeout=120).state, lockstep.State.SUCCEEDED)


if __name__ == "__main__":
    unittest.main()
