# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""Whom the client asks, and how it waits, also for an API server that misbehaves."""

import json
import os
import threading
import time
import unittest
from datetime import datetime, timedelta, timezone
from unittest import mock

from kubernetes import client as k8s

import lockstep
from lockstep import _api

from .stub import Cluster, Fault

EXAMPLES = os.path.join(os.path.dirname(__file__), "../../internal/view/testdata/waiting.json")


class OnACluster(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster())
        self.client = lockstep.Client(kubeconfig=self.cluster.kubeconfig)
        self.addCleanup(lambda: self.client._api._client.rest_client.pool_manager.clear())

    def enterContext(self, manager):  # unittest has it since Python 3.11.
        value = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return value

    def soon(self, do, *args):
        """Do something when somebody watches."""

        def run():
            self.cluster.wait(lambda: any("watch" in query for _, _, query, _ in self.cluster.requests))
            do(*args)

        threading.Thread(target=run, daemon=True).start()


class Clients(OnACluster):
    def test_two_clients_ask_two_clusters(self):
        other = self.enterContext(Cluster(namespace="others"))
        self.cluster.add("mine")
        other.add("theirs")
        theirs = lockstep.Client(kubeconfig=other.kubeconfig)
        self.assertEqual([job.name for job in self.client.jobs()], ["mine"])
        self.assertEqual([job.name for job in theirs.jobs()], ["theirs"])
        self.assertEqual((self.client.namespace, theirs.namespace), ("team", "others"))

    def test_other_users_of_the_kubernetes_client_keep_their_configuration(self):
        self.assertNotIn(str(self.cluster.server.server_address[1]), k8s.ApiClient().configuration.host)

    def test_a_context_can_be_named_where_none_is_the_current_one(self):
        self.cluster.write_kubeconfig("http://127.0.0.1:1", current=None)
        self.assertEqual(lockstep.Client(context="it", kubeconfig=self.cluster.kubeconfig).namespace, "team")
        with self.assertRaises(lockstep.LockstepError):
            lockstep.Client(kubeconfig=self.cluster.kubeconfig)

    def test_an_api_server_that_is_not_there_is_told_in_words(self):
        self.cluster.write_kubeconfig("http://127.0.0.1:1")
        with self.assertRaisesRegex(lockstep.Unreachable, "^can't read it: the API server does not answer: .*refused"):
            lockstep.Client(kubeconfig=self.cluster.kubeconfig).job("any")


class Waiting(OnACluster):
    def test_an_api_server_that_restarts_ends_no_wait(self):
        self.cluster.add("train", "AttemptRunning")
        self.cluster.faults = [
            Fault("GET", "/frameworks$", code=503, watch=True),
            Fault("GET", "/frameworks/train$", code=500, times=2),
            Fault("GET", "/frameworks/train$", times=3),
            Fault("GET", "/frameworks$", code=429, watch=True),
            Fault("GET", "/frameworks$", watch=True),
        ]

        def end():
            self.cluster.wait(lambda: not any(fault.times for fault in self.cluster.faults), timeout=30)
            self.cluster.change("train", "Completed", code=0)

        threading.Thread(target=end, daemon=True).start()
        with mock.patch.object(_api, "_LAST_PAUSE", 0.1):
            self.assertEqual(lockstep.Job(self.client, "train").wait(timeout=60).state, lockstep.State.SUCCEEDED)

    def test_a_connection_that_is_dead_does_not_hold_a_wait_up(self):
        self.cluster.add("train", "AttemptRunning")
        silent = threading.Event()
        self.addCleanup(silent.set)
        self.cluster.faults = [Fault("GET", "/frameworks$", silent=silent, times=9, watch=True)]
        begun = time.monotonic()
        with mock.patch.object(_api, "SLACK", 0.2), self.assertRaisesRegex(lockstep.WaitTimeout, "train: Running.* after 1s"):
            lockstep.Job(self.client, "train").wait(timeout=1)
        self.assertLess(time.monotonic() - begun, 10)
        self.assertEqual(len([query for _, _, query, _ in self.cluster.requests if "watch" in query]), 1, "it waited for the same again")

    def test_what_does_not_get_better_ends_a_wait(self):
        self.cluster.add("train", "AttemptRunning")
        self.cluster.faults = [Fault("GET", "/frameworks$", code=403, watch=True)]
        with self.assertRaisesRegex(lockstep.LockstepError, "can't watch it: not now"):
            lockstep.Job(self.client, "train").wait(timeout=60)
        self.cluster.faults = [Fault("GET", "/frameworks", code=503, times=1000)]
        with mock.patch.object(_api, "_PATIENCE", 0.1), self.assertRaises(lockstep.Unreachable):
            lockstep.Job(self.client, "train").wait()

    def test_who_waits_for_a_job_to_run_is_content_if_it_has_succeeded(self):
        self.cluster.add("short", "AttemptPreparing")
        self.soon(self.cluster.change, "short", "Completed", 0)
        job = lockstep.Job(self.client, "short")
        self.assertEqual(job.wait(lockstep.State.RUNNING, timeout=30).state, lockstep.State.SUCCEEDED)
        with self.assertRaises(lockstep.JobFailed):
            job.wait(lockstep.State.STOPPED, timeout=30)
        self.cluster.change("short", "Completed", code=1)
        with self.assertRaises(lockstep.JobFailed):
            job.wait(lockstep.State.RUNNING, timeout=30)

    def test_a_status_is_told_once(self):
        self.cluster.add("train", "AttemptPreparing")
        job, states = lockstep.Job(self.client, "train"), []
        for status in job.watch(timeout=30):
            states.append(str(status.state))
            if states == ["Preparing"]:
                self.cluster.change("train", "AttemptPreparing", note="of no interest")
                self.cluster.change("train", "AttemptRunning")
            elif states[-1] == "Running":
                self.cluster.change("train", "Completed", code=0)
        self.assertEqual(states, ["Preparing", "Running", "Succeeded"])

    def test_the_time_to_the_next_attempt_is_no_new_status(self):
        self.cluster.add("train", "AttemptRunning")

        def retries(passed):
            since = (datetime.now(timezone.utc) - timedelta(seconds=passed)).strftime("%Y-%m-%dT%H:%M:%SZ")
            self.cluster.change("train", "AttemptCompleted", transitionTime=since, retryPolicyStatus={"retryDelaySec": 3600}, note=passed)

        job, told = lockstep.Job(self.client, "train"), []
        for status in job.watch(timeout=30):
            told.append((str(status.state), status.waiting[:15]))
            if str(status.state) == "Running":
                retries(0)
                self.soon_read(lambda: retries(600), lambda: self.cluster.change("train", "Completed", code=0))
        self.assertEqual(told, [("Running", ""), ("Retrying", "next attempt in"), ("Succeeded", "")])

    def soon_read(self, *steps):
        """Do something after the other, each when the watch has told of the one before."""

        def run():
            for step in steps:
                version = self.cluster.version
                self.cluster.wait(lambda: self.cluster.told >= version)
                step()

        threading.Thread(target=run, daemon=True).start()

    def test_a_job_that_is_made_anew_is_another_one(self):
        self.cluster.add("train", "AttemptRunning")
        self.soon(self.cluster.add, "train", "Completed", "of-another")
        with self.assertRaisesRegex(lockstep.LockstepError, "train was deleted"):
            lockstep.Job(self.client, "train").wait(timeout=30)


class Deleting(OnACluster):
    def test_it_returns_when_the_job_is_gone(self):
        self.cluster.add("train")
        gone = []

        def end():
            gone.append(True)
            self.cluster.delete("train")

        self.soon(end)
        lockstep.Job(self.client, "train").delete(timeout=30)
        self.assertTrue(gone)
        deletion = next(body for method, _, _, body in self.cluster.requests if method == "DELETE")
        self.assertEqual((deletion["propagationPolicy"], deletion["preconditions"]), ("Foreground", {"uid": "of-train"}))

    def test_one_of_the_same_name_that_follows_is_another_job(self):
        self.cluster.add("train")
        self.soon(self.cluster.add, "train", "AttemptRunning", "of-another")
        lockstep.Job(self.client, "train").delete(timeout=30)

    def test_it_waits_no_longer_than_it_is_to(self):
        self.cluster.add("train")
        with self.assertRaisesRegex(lockstep.WaitTimeout, "is not gone after 1s"):
            lockstep.Job(self.client, "train").delete(timeout=1)
        lockstep.Job(self.client, "train").delete(wait=False)


class Words(unittest.TestCase):
    def test_they_are_those_of_kubectl_lockstep(self):
        with open(EXAMPLES, encoding="utf-8") as file:
            examples = json.load(file)
        now = datetime.fromisoformat(examples["now"].replace("Z", "+00:00"))
        for example in examples["frameworks"]:
            with self.subTest(example["is"]):
                status = lockstep.Status.of(example["framework"], now)
                self.assertEqual((str(status.state), status.waiting), (example["state"], example["waiting"]))


if __name__ == "__main__":
    unittest.main()
