# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""Following logs: of tasks that begin, end and are retried, through connections that break."""

import itertools
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
import unittest
from unittest import mock

import lockstep
from lockstep import _logs

from .stub import Fault
from .test_waiting import OnACluster

PYTHON = os.path.join(os.path.dirname(__file__), "..")


def soon_over(cluster, name):
    """A job of four tasks that begin one after the other, say something, and end."""
    cluster.wait(lambda: any(path.endswith("/frameworks/" + name) for _, path, _, _ in cluster.requests))
    cluster.change(name, "AttemptPreparing")
    cluster.run(name, 0, phase="Pending")
    cluster.change(name, "AttemptRunning")
    pods = []
    for index in range(4):
        time.sleep(0.6)
        pods.append(cluster.run(name, index))
        cluster.says(pods[-1], "epoch 1")
    cluster.wait(lambda: cluster.open_logs == 4)
    for pod in pods:
        cluster.says(pod, "epoch 2")
        cluster.ends(pod)
    cluster.change(name, "AttemptDeletionPending")
    cluster.wait(lambda: cluster.open_logs == 0)
    for pod in pods:
        cluster.goes(pod)
    cluster.change(name, "Completed", code=0)


class Examples(OnACluster):
    LINES = sorted(f"[worker/{index}] epoch {epoch}" for index in range(4) for epoch in (1, 2))

    def run_as_written(self, program):
        self.cluster.play = soon_over
        ran = subprocess.run(
            [sys.executable, "-c", program], cwd=PYTHON, env={**os.environ, "KUBECONFIG": self.cluster.kubeconfig}, capture_output=True, text=True, timeout=60
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout.splitlines()

    def test_that_of_the_documentation_shows_the_logs_of_all_tasks(self):
        with open(os.path.join(PYTHON, "../docs/python.md"), encoding="utf-8") as page:
            program = re.search(r"```python\n(.*?)```", page.read(), re.DOTALL)[1]
        *lines, last = self.run_as_written(program)
        self.assertEqual(sorted(lines), self.LINES)
        self.assertEqual(last, "train: Succeeded, attempt 0, 0/4 running, code 0")

    def test_that_of_the_package_shows_the_logs_of_all_tasks(self):
        indented = "\n".join(line for line in lockstep.__doc__.splitlines() if line.startswith("    "))
        self.assertEqual(sorted(self.run_as_written(textwrap.dedent(indented))), self.LINES)


class Following(OnACluster):
    def setUp(self):
        super().setUp()
        self.cluster.add("train")
        self.job = lockstep.Job(self.client, "train")
        self.enterContext(mock.patch.object(_logs, "_LOOK", 0.1))

    def followed(self, lines, count):
        return list(itertools.islice(lines, count))

    def finish(self, *pods):
        for pod in pods:
            self.cluster.ends(pod)
        self.cluster.change("train", "Completed", code=0)

    def test_a_task_that_is_retried_is_followed_again(self):
        first = self.cluster.run("train", 0)
        self.cluster.says(first, "first try")
        lines = self.job.logs(follow=True)
        self.assertEqual(next(lines), "[worker/0] first try")
        self.cluster.goes(first)
        self.cluster.says(self.cluster.run("train", 0, uid="another"), "second try")
        self.assertEqual(next(lines), "[worker/0] second try")
        self.finish(first)
        self.assertEqual(list(lines), [])

    def test_a_log_that_breaks_off_is_read_on_without_a_line_twice_or_lost(self):
        pod = self.cluster.run("train", 0)
        same = "2026-11-26T12:00:00.5Z"
        for text in ("one", "two", "two"):
            self.cluster.says(pod, text, at=same)
        self.cluster.breaks(pod)
        lines = self.job.logs(follow=True)
        self.assertEqual(self.followed(lines, 3), ["[worker/0] one", "[worker/0] two", "[worker/0] two"])
        for text in ("two", "three"):
            self.cluster.says(pod, text, at=same)
        self.cluster.breaks(pod)
        self.cluster.faults = [Fault("GET", "/log$", code=500, times=2), Fault("GET", "/log$", times=2)]
        self.assertEqual(self.followed(lines, 2), ["[worker/0] two", "[worker/0] three"])
        self.cluster.breaks(pod)
        self.cluster.says(pod, "the end")
        self.finish(pod)
        self.assertEqual(list(lines), ["[worker/0] the end"])

    def test_a_log_that_is_gone_before_its_end_was_read_is_missed(self):
        self.assertRegex(self.told_when_it_goes_after(self.cluster.breaks), r"^\[worker/0\] the end of the log is missing: can't read the log of it: .*roke")

    def test_a_log_that_was_read_to_its_end_before_its_pod_went_lacks_nothing(self):
        self.assertEqual(self.told_when_it_goes_after(self.cluster.starts_again), "")

    def told_when_it_goes_after(self, happens):
        """What is told of a Pod that is deleted after something happened to its log, before the log is opened again."""
        pod = self.cluster.run("train", 0)
        self.cluster.says(pod, "one")
        lines = self.job.logs(follow=True)
        self.assertEqual(next(lines), "[worker/0] one")
        again = Fault("GET", "/log$", code=404, times=1000)
        self.cluster.faults = [again]
        happens(pod)
        self.cluster.wait(lambda: again.times < 1000)
        self.cluster.goes(pod)
        self.cluster.change("train", "Completed", code=0)
        return "\n".join(lines)

    def test_a_log_that_breaks_off_before_its_first_line_loses_none_by_the_tail(self):
        pod = self.cluster.run("train", 0)
        away = Fault("GET", "/log$", code=503, times=1000)

        def speak():
            self.cluster.wait(lambda: self.cluster.open_logs == 1)
            self.cluster.faults = [away]
            self.cluster.breaks(pod)
            self.cluster.wait(lambda: away.times < 1000)
            for text in ("one", "two", "three"):
                self.cluster.says(pod, text)
            self.cluster.faults = []
            self.cluster.wait(lambda: self.cluster.open_logs == 1)
            self.finish(pod)

        threading.Thread(target=speak, daemon=True).start()
        self.assertEqual(list(self.job.logs(follow=True, tail=1)), ["[worker/0] one", "[worker/0] two", "[worker/0] three"])

    def test_a_connection_that_is_dead_is_replaced(self):
        pod = self.cluster.run("train", 0)
        silent = threading.Event()
        self.addCleanup(silent.set)
        self.cluster.faults = [Fault("GET", "/log$", silent=silent, times=2)]
        with mock.patch.object(_logs, "_QUIET", 0.3):
            lines = self.job.logs(follow=True)
            self.cluster.says(pod, "it lives")
            self.assertEqual(next(lines), "[worker/0] it lives")
            lines.close()

    def test_who_leaves_leaves_no_thread_and_no_connection(self):
        pods = [self.cluster.run("train", index) for index in range(2)]
        for pod in pods:
            self.cluster.says(pod, "one")
        lines = self.job.logs(follow=True)
        self.followed(lines, 2)
        self.cluster.wait(lambda: self.cluster.open_logs == 2)
        lines.close()
        self.cluster.wait(lambda: self.cluster.open_logs == 0)
        self.cluster.wait(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("lockstep-log")])

    def test_a_log_that_may_not_be_read_costs_the_others_nothing(self):
        pods = [self.cluster.run("train", index) for index in range(2)]
        self.cluster.says(pods[1], "mine")
        self.cluster.faults = [Fault("GET", "worker-0/log$", code=403, times=9)]
        self.finish(*pods)
        for follow in (False, True):
            self.assertEqual(sorted(self.job.logs(follow=follow)), ["[worker/0] can't read the log of it: not now", "[worker/1] mine"])

    def test_a_job_without_logs_says_so(self):
        self.cluster.change("train", "Completed", code=0)
        for follow in (False, True):
            with self.assertRaisesRegex(lockstep.LockstepError, "no Pods with logs"):
                list(self.job.logs(follow=follow))

    def test_what_may_not_be_listed_is_told(self):
        self.cluster.faults = [Fault("GET", "/pods$", code=403, times=9)]
        with self.assertRaisesRegex(lockstep.LockstepError, "can't list the Pods of it: not now"):
            list(self.job.logs(follow=True))

    def test_an_api_server_that_restarts_ends_no_log(self):
        pod = self.cluster.run("train", 0)
        lines = self.job.logs(follow=True)
        self.cluster.says(pod, "before")
        self.assertEqual(next(lines), "[worker/0] before")
        self.cluster.faults = [Fault("GET", "/frameworks/train$", code=503, times=2), Fault("GET", "/pods$", times=2)]
        self.cluster.wait(lambda: not any(fault.times for fault in self.cluster.faults), timeout=30)
        self.cluster.says(pod, "after")
        self.finish(pod)
        self.assertEqual(list(lines), ["[worker/0] after"])


if __name__ == "__main__":
    unittest.main()
