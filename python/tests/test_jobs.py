# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""Jobs on the cluster of KUBECONFIG, in the namespace of NAMESPACE. e2e/users runs them."""

import os
import unittest

from kubernetes import client as k8s
from kubernetes import config

import lockstep

# An image that a simulated node runs; these annotations say how the container ends.
IMAGE = "lockstep.dev/simulated:any"


def role(name, tasks, seconds=None, code=0, cpu="1", **more):
    notes = {} if seconds is None else {"simulate.lockstep.dev/run-seconds": str(seconds), "simulate.lockstep.dev/exit-code": str(code)}
    pod = {
        "metadata": {"annotations": notes},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": IMAGE, "resources": {"requests": {"cpu": cpu}}}]},
    }
    return lockstep.Role(name, tasks, pod=pod, **more)


class Jobs(unittest.TestCase):
    def setUp(self):
        self.client = lockstep.Client(namespace=os.environ["NAMESPACE"])

    def submit(self, job):
        made = self.client.submit(job)
        self.addCleanup(lambda: made.delete())
        return made

    def test_a_job_is_submitted_and_waited_for(self):
        job = self.submit(lockstep.Framework("trains", [role("worker", 3, seconds=1, min_succeeded=3)]))
        states = [status.state for status in job.watch(timeout=60)]
        self.assertEqual(states[-1], lockstep.State.SUCCEEDED)
        status = job.wait(timeout=60)
        self.assertEqual((status.code, status.total, status.attempt), (0, 3, 0))
        self.assertIn("trains: Succeeded, attempt 0", str(status))
        self.assertIn("trains", [status.name for status in self.client.jobs()])

    def test_a_job_that_fails_says_why_and_what_was_tried(self):
        job = self.submit(lockstep.Framework("fails", [role("worker", 2, seconds=1, code=7)], max_retries=1))
        with self.assertRaisesRegex(lockstep.JobFailed, "fails: Failed, attempt 1.* code 7") as raised:
            job.wait(timeout=60)
        self.assertEqual([(past.id, past.code) for past in raised.exception.status.history], [(0, 7), (1, 7)])
        self.assertIn("<td>0</td><td>Failed</td><td>7</td>", job._repr_html_())

    def test_a_gang_without_room_says_what_it_waits_for(self):
        job = self.submit(lockstep.Framework("waits", [role("worker", 20, cpu="7")]))
        for status in job.watch(timeout=60):
            if status.waiting == "NotEnoughResources":
                break
        with self.assertRaisesRegex(lockstep.WaitTimeout, "waits for NotEnoughResources after 1s"):
            job.wait(timeout=1)
        with self.assertRaisesRegex(lockstep.LockstepError, "no Pods with logs"):
            list(job.logs())

    def test_a_role_says_what_its_containers_run(self):
        said = lockstep.Role("worker", 1, image=IMAGE, command=["train"], args=["--fast"], env={"A": "b"}, resources={"cpu": "500m"})
        job = self.submit(lockstep.Framework("described", [said], labels={"team": "a"}))
        self.assertEqual(job.wait(lockstep.State.RUNNING, timeout=60).running, 1)
        (pod,) = k8s.CoreV1Api(config.new_client_from_config()).list_namespaced_pod(job.namespace, label_selector="FC_FRAMEWORK_NAME=described").items
        container = pod.spec.containers[0]
        self.assertEqual((container.image, container.command, container.args), (IMAGE, ["train"], ["--fast"]))
        self.assertIn(("A", "b"), [(each.name, each.value) for each in container.env])
        self.assertEqual((container.resources.requests["cpu"], container.resources.limits["cpu"]), ("500m", "500m"))
        self.submit(lockstep.Framework("another", [said], labels={"team": "b"}, started=False))
        self.assertEqual([status.name for status in self.client.jobs("team=a")], ["described"])

    def test_tasks_that_are_no_gang_run_as_they_find_room(self):
        job = self.submit(lockstep.Framework("parts", [role("worker", 20, cpu="7")], gang=False))
        self.assertTrue(any(0 < status.running < 20 for status in job.watch(timeout=60)))

    def test_a_job_that_is_deleted_is_gone(self):
        job = self.client.submit(lockstep.Framework("goes", [role("worker", 1)]))
        job.wait(lockstep.State.RUNNING, timeout=60)
        job.delete(timeout=60)
        with self.assertRaisesRegex(lockstep.LockstepError, "not found"):
            job.status()

    def test_a_job_is_started_and_stopped(self):
        job = self.submit(lockstep.Framework("steered", [role("worker", 1)], started=False))
        self.assertEqual(job.status().state, lockstep.State.NOT_STARTED)
        job.start()
        self.assertEqual(job.wait(lockstep.State.RUNNING, timeout=60).running, 1)
        job.stop()
        with self.assertRaisesRegex(lockstep.JobFailed, "Stopped"):
            job.wait(timeout=60)

    def test_mistakes_are_told(self):
        with self.assertRaisesRegex(lockstep.LockstepError, "taskNumber"):
            self.client.submit(lockstep.Framework("wrong", [role("worker", -1)]))
        with self.assertRaisesRegex(lockstep.LockstepError, 'frameworks.* "nothing" not found'):
            self.client.job("nothing")
        with self.assertRaisesRegex(lockstep.LockstepError, "no-such-context"):
            lockstep.Client(context="no-such-context")


if __name__ == "__main__":
    unittest.main()
