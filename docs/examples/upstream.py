"""A server with pilotfish's metrics, listing and load hints: python3 upstream.py PORT"""
import collections, http.server, json, os, signal, sys, threading, time, urllib.parse

count = collections.Counter(cores=os.cpu_count(), stalled_joblets=0, jobs_running=0, jobs_completed_total=0)
changed, draining, cached, turns = threading.Condition(), threading.Event(), {}, []
states = {}  # of jobs, by Job-Id: waiting, withdrawn or started; only while changed is locked


def fetch(project):
    if project in cached:
        return "cached=1"
    began = time.monotonic()
    time.sleep(0.2)  # a fetch takes long
    cached[project] = "the project's data"
    return f"cached=0, fetch={time.monotonic() - began:.3f}"


class Upstream(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are used again

    def respond(self, status, text="", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(text.encode()), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        path, _, project = self.path.partition("?project=")
        if path == "/v1/load":  # a probe before a job of this project
            here = urllib.parse.unquote_plus(project) in map(str, list(cached))
            load = f"running={count['jobs_running']}, stalled={count['stalled_joblets']}, busy={count['jobs_running']}"
            return self.respond(200, X_Load=f"{load}, cached={here:d}")
        metrics = "".join(f"ruleserver_{name} {value}\n" for name, value in count.items())
        listing = json.dumps({"projects": [{"id": p, "bytes": len(cached[p])} for p in list(cached)]})
        text = {"/metrics": metrics, "/v1/cache/projects": listing}.get(self.path, "")
        self.respond(200 if text else 404, text)

    def do_DELETE(self):  # another server is idle: withdraw this job if it still waits
        job = self.path.removeprefix("/v1/jobs/")
        with changed:
            state = states.get(job)
            if state == "waiting":
                states[job] = "withdrawn"
                changed.notify_all()
        if state == "started":
            return self.respond(409, "started\n")
        if state != "waiting":
            return self.respond(404, "unknown\n")
        self.send_response(204)
        self.end_headers()

    def do_POST(self):
        job, arrived = json.loads(self.rfile.read(int(self.headers["Content-Length"]))), time.monotonic()
        if draining.is_set():
            return self.respond(503, "draining\n", Job_Started="no")
        name = self.headers.get("Job-Id", self)
        turn = arrived + 10 * min(float(self.headers.get("Job-Expected", 1)), 16)  # short jobs first, long ones in time
        with changed:  # wait for a core
            count["stalled_joblets"] += 1
            turns.append(turn)
            states[name] = "waiting"
            free = lambda: count["jobs_running"] < count["cores"] and turn == min(turns)
            changed.wait_for(lambda: states[name] == "withdrawn" or free())
            turns.remove(turn)
            starts = states.pop(name) == "waiting"
            if starts:
                states[name] = "started"
            count.update(stalled_joblets=-1, jobs_running=int(starts))
            changed.notify_all()  # there may be another core for the next
        if not starts:
            return self.respond(503, "withdrawn\n", Job_Started="withdrawn")
        try:
            facts = f"waited={time.monotonic() - arrived:.3f}, {fetch(job['project_id'])}"
            time.sleep(job.get("seconds", 0))  # the work itself
            load = f"running={count['jobs_running']}, stalled={count['stalled_joblets']}, {facts}"
            self.respond(200, f"a result made of {cached[job['project_id']]}\n", X_Load=load)
        finally:
            with changed:
                del states[name]
                count.update(jobs_running=-1, jobs_completed_total=1)
                changed.notify_all()


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Upstream)
server.timeout = 0.1  # seconds, in which it notices SIGTERM
signal.signal(signal.SIGTERM, lambda *_: draining.set())  # no new jobs; the open ones end
while not draining.is_set() or count["jobs_running"] + count["stalled_joblets"] > 0:
    server.handle_request()
