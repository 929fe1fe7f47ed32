"""A server that tells pilotfish all that it can use: python3 upstream.py PORT [CONSUL_AGENT]"""
import collections, http.server, json, os, signal, sys, threading, time, urllib.request

PORT, CORES = int(sys.argv[1]), os.cpu_count()
core, lock, cached, draining = threading.Semaphore(CORES), threading.Lock(), {}, threading.Event()
count = collections.Counter(cores=CORES, stalled_joblets=0, jobs_running=0, jobs_completed_total=0)


def add(**changes):
    with lock:
        count.update(changes)


def fetch(project):  # takes long, but not while the data is cached
    if project not in cached:
        time.sleep(0.2)
        cached[project] = "the project's data"


def run(job):  # the work itself
    time.sleep(job.get("seconds", 0))
    return f"a result made of {cached[job['project_id']]}\n"


def consul(action, **service):
    if len(sys.argv) > 2:
        url = f"http://{sys.argv[2]}/v1/agent/service/{action}"
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(service).encode(), method="PUT")).close()


def register():
    meta = {"cores": str(CORES), "draining": str(draining.is_set()).lower()}
    consul("register", Name="ruleserver", ID=f"ruleserver-{PORT}", Address="127.0.0.1", Port=PORT, Meta=meta)


class Upstream(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are used again

    def answer(self, status, text="", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(text.encode()), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        if self.path == "/metrics":
            self.answer(200, "".join(f"ruleserver_{name} {value}\n" for name, value in count.items()))
        elif self.path == "/v1/cache/projects":
            self.answer(200, json.dumps({"projects": [{"id": p, "bytes": len(cached[p])} for p in list(cached)]}))
        else:
            self.answer(404)

    def do_POST(self):
        job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/prefetch":
            fetch(job["project_id"])
            return self.answer(200)
        if draining.is_set():
            return self.answer(503, "draining\n", Job_Started="no")
        add(stalled_joblets=1)
        came = time.monotonic()
        with core:
            add(stalled_joblets=-1, jobs_running=1)
            try:
                began, hit = time.monotonic(), int(job["project_id"] in cached)
                fetch(job["project_id"])
                told = f"cached={hit}, waited={began - came:.3f}, fetch={time.monotonic() - began:.3f}"
                result = run(job)
                load = f"running={count['jobs_running']}, stalled={count['stalled_joblets']}, {told}"
                self.answer(200, result, X_Load=load)
            finally:
                add(jobs_running=-1, jobs_completed_total=1)


def leave():  # no new jobs; the open ones end; then nobody is told of this server any more
    draining.set()
    register()
    while count["jobs_running"] + count["stalled_joblets"] > 0:
        time.sleep(0.1)
    consul(f"deregister/ruleserver-{PORT}")
    server.shutdown()


server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Upstream)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=leave).start())
register()
server.serve_forever()
