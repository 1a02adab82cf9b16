# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0

"""An API server that knows Frameworks, Pods and logs, and can be made to misbehave, for tests that need no cluster."""

import copy
import json
import os
import re
import socket
import tempfile
import threading
import time
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

JOBS = re.compile(r"/apis/frameworkcontroller.microsoft.com/v1/namespaces/([^/]+)/frameworks(?:/([^/]+))?$")
PODS = re.compile(r"/api/v1/namespaces/([^/]+)/pods(?:/([^/]+))?(/log)?$")

# Stands in a log for its end, which is told once.
END = object()


class Fault:
    """What is done in place of an answer to a request: a refusal, no answer at all, or a closed connection."""

    def __init__(self, method, path, code=0, silent=None, times=1, watch=None):
        self.method, self.path, self.code, self.silent, self.times, self.watch = method, path, code, silent, times, watch

    def hits(self, method, path, query):
        if not self.times or method != self.method or not re.search(self.path, path):
            return False
        if self.watch is not None and self.watch != ("watch" in query):
            return False
        self.times -= 1
        return True


class Cluster:
    """What is there. Context manager: the API server runs within, and kubeconfig is the file that leads to it."""

    def __init__(self, namespace="team"):
        self.namespace = namespace
        self.changed = threading.Condition()
        self.jobs, self.pods, self.logs = {}, {}, {}
        # The version of all, and the one that a watch has told last.
        self.version, self.told = 1, 0
        self.faults, self.requests = [], []
        # What becomes of a job that is submitted: play(cluster, name) runs in a thread.
        self.play = None
        # How many logs are open.
        self.open_logs = 0

    def __enter__(self):
        cluster = self
        self.done = threading.Event()

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # Clients may leave at any time.

        self.server = Server(("127.0.0.1", 0), type("Of", (Handler,), {"cluster": cluster}))
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()
        address = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.write_kubeconfig(address)
        return self

    def write_kubeconfig(self, address, current="it"):
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": {"server": address}}],
            "users": [{"name": "me", "user": {"token": "secret"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me", "namespace": self.namespace}}],
        }
        if current:
            content["current-context"] = current
        with open(self.kubeconfig, "w", encoding="utf-8") as file:
            json.dump(content, file)

    def __exit__(self, *_):
        self.done.set()
        with self.changed:
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()

    def add(self, name, state="AttemptRunning", uid=None, **status):
        """A Framework in a state."""
        manifest = {
            "metadata": {"name": name, "namespace": self.namespace, "uid": uid or f"of-{name}"},
            "spec": {"executionType": "Start", "taskRoles": [{"name": "worker", "taskNumber": 2}]},
            "status": {"state": state, **status},
        }
        self._store(name, manifest)

    def change(self, name, state, code=None, **status):
        """A Framework goes to a state; a code is that of its end."""
        manifest = copy.deepcopy(self.jobs[name])
        manifest["status"] = {**(manifest.get("status") or {}), "state": state, **status}
        if code is not None:
            kind = {"name": "Failed" if code else "Succeeded"}
            manifest["status"]["attemptStatus"] = {"id": 0, "completionStatus": {"code": code, "type": kind}}
        self._store(name, manifest)

    def delete(self, name):
        with self.changed:
            del self.jobs[name]
            self.version += 1
            self.changed.notify_all()

    def _store(self, name, manifest):
        with self.changed:
            self.version += 1
            manifest["metadata"]["resourceVersion"] = str(self.version)
            self.jobs[name] = manifest
            self.changed.notify_all()

    def run(self, job, index, phase="Running", role="worker", uid=None):
        """A Pod of a task, with an empty log. Returns its name."""
        name = f"{job}-{role}-{index}"
        notes = {"FC_FRAMEWORK_UID": self.jobs[job]["metadata"]["uid"], "FC_TASKROLE_NAME": role, "FC_TASK_INDEX": str(index)}
        with self.changed:
            self.logs[name] = []
            self.pods[name] = {
                "metadata": {"name": name, "namespace": self.namespace, "uid": uid or f"of-{name}", "labels": {"FC_FRAMEWORK_NAME": job}, "annotations": notes},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]},
                "status": {"phase": phase},
            }
        return name

    def says(self, pod, text, at=None):
        """A Pod writes a line."""
        with self.changed:
            self.logs[pod].append((at or datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f000Z"), text))
            self.changed.notify_all()

    def breaks(self, pod):
        """The connections of those who follow the log break here."""
        self.says(pod, None)

    def starts_again(self, pod):
        """The container of a Pod starts again: those who follow its log have read it to its end."""
        self.says(pod, END)

    def ends(self, pod, phase="Succeeded"):
        with self.changed:
            self.pods[pod]["status"]["phase"] = phase
            self.changed.notify_all()

    def goes(self, pod):
        """A Pod is deleted, and its log with it."""
        with self.changed:
            del self.pods[pod]
            self.changed.notify_all()

    def wait(self, condition, timeout=60):
        """Wait for something to be so."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError("it does not come to be so")
                self.changed.wait(min(left, 0.05))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: Cluster

    def log_message(self, *_):
        pass

    def handle_any(self):
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        with self.cluster.changed:
            self.cluster.requests.append((self.command, parts.path, query, body))
            fault = next((f for f in self.cluster.faults if f.hits(self.command, parts.path, query)), None)
        if fault:
            if fault.silent:
                fault.silent.wait()
            elif fault.code:
                return self.refuse(fault.code, "not now")
            return self.cut()
        if found := JOBS.match(parts.path):
            return self.jobs(found[2], query, body)
        if found := PODS.match(parts.path):
            return self.log(found[2], query) if found[3] else self.pods(found[2])
        return self.refuse(404, f"{parts.path} not found")

    do_GET = do_POST = do_PATCH = do_DELETE = handle_any

    def cut(self):
        """Break the connection."""
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def answer(self, content, code=200):
        data = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, code, message):
        self.answer({"kind": "Status", "status": "Failure", "message": message, "code": code}, code)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def piece(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def jobs(self, name, query, body):
        cluster = self.cluster
        if self.command == "POST":
            name = body["metadata"]["name"]
            body["metadata"].update({"uid": f"of-{name}", "namespace": cluster.namespace})
            cluster._store(name, body)
            if cluster.play:
                threading.Thread(target=cluster.play, args=(cluster, name), daemon=True).start()
            return self.answer(body, 201)
        if "watch" in query:
            return self.watch(query)
        if name is None:
            return self.answer({"items": list(cluster.jobs.values())})
        if name not in cluster.jobs:
            return self.refuse(404, f'frameworks "{name}" not found')
        return self.answer(cluster.jobs[name])

    def watch(self, query):
        cluster, name = self.cluster, query["fieldSelector"].partition("=")[2]
        version, until = int(query["resourceVersion"]), time.monotonic() + int(query["timeoutSeconds"])
        self.begin_stream()
        while time.monotonic() < until and not cluster.done.is_set():
            with cluster.changed:
                found = cluster.jobs.get(name)
                if found is None:
                    event = {"type": "DELETED", "object": {"metadata": {"name": name}}}
                elif int(found["metadata"]["resourceVersion"]) > version:
                    version = int(found["metadata"]["resourceVersion"])
                    event = {"type": "MODIFIED", "object": found}
                else:
                    cluster.changed.wait(0.05)
                    continue
            self.piece(json.dumps(event).encode() + b"\n")
            cluster.told = version
        self.piece(b"")

    def pods(self, name):
        with self.cluster.changed:
            if name is None:
                return self.answer({"items": list(self.cluster.pods.values())})
            if name not in self.cluster.pods:
                return self.refuse(404, f'pods "{name}" not found')
            return self.answer(self.cluster.pods[name])

    def log(self, name, query):
        cluster, since = self.cluster, query.get("sinceTime", "").rstrip("Z")
        if name not in cluster.pods:
            return self.refuse(404, f'pods "{name}" not found')
        self.begin_stream()
        sent = 0
        with cluster.changed:
            cluster.open_logs += 1
            lines = [line for line in cluster.logs[name] if line[0] >= since]
            skipped = len(cluster.logs[name]) - len(lines)
            if "tailLines" in query:
                skipped += max(0, len(lines) - int(query["tailLines"]))
            sent = skipped
        try:
            while not cluster.done.is_set():
                with cluster.changed:
                    lines, sent = cluster.logs[name][sent:], len(cluster.logs[name])
                    over = "follow" not in query or name not in cluster.pods or cluster.pods[name]["status"]["phase"] != "Running"
                    if not lines and not over:
                        cluster.changed.wait(0.05)
                        # A client that has hung up is found by reading.
                        self.connection.settimeout(0.001)
                        try:
                            if self.connection.recv(1, socket.MSG_PEEK) == b"":
                                return
                        except socket.timeout:
                            pass
                        finally:
                            self.connection.settimeout(None)
                for stamp, text in lines:
                    if text is None:  # Here the connection breaks, once.
                        cluster.logs[name].remove((stamp, text))
                        return self.cut()
                    if text is END:
                        cluster.logs[name].remove((stamp, text))
                        return self.piece(b"")
                    self.piece((f"{stamp} " if "timestamps" in query else "").encode() + text.encode() + b"\n")
                if over:
                    return self.piece(b"")
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self.close_connection = True
            with cluster.changed:
                cluster.open_logs -= 1
                cluster.changed.notify_all()
