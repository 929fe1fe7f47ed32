"""A query engine that caches tables: python3 queries.py HOST:PORT FOLDER

POST /v1/queries takes {"tables": ["sales"], "query": "select ... from sales"}. FOLDER has the tables, as sales.csv. A table is
loaded into memory for the first query that needs it. Needs DuckDB: pip install duckdb"""
import http.server, json, os, pathlib, sys, threading

import duckdb

folder, slots = pathlib.Path(sys.argv[2]), threading.Semaphore(os.cpu_count())
count = {"queries_running": 0, "queries_queued": 0, "query_slots": os.cpu_count(), "queries_finished_total": 0}
engine, loaded, loading, counting = duckdb.connect(), {}, threading.Lock(), threading.Lock()


def load(table):
    with loading:
        if table in loaded:
            return
        file = folder / f"{pathlib.Path(table).name}.csv"
        engine.execute(f'create table "{file.stem}" as from read_csv(?)', [str(file)])
        loaded[table] = file.stat().st_size


def add(**changes):
    with counting:
        for name, change in changes.items():
            count[name] += change


class Engine(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are used again

    def respond(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", len(text.encode()))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        metrics = "".join(f"{name} {value}\n" for name, value in count.items())
        listing = json.dumps({"projects": [{"id": table, "bytes": size} for table, size in loaded.items()]})
        text = {"/metrics": metrics, "/v1/tables": listing}.get(self.path, "")
        self.respond(200 if text else 404, text)

    def do_POST(self):
        job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        add(queries_queued=1)
        with slots:
            add(queries_queued=-1, queries_running=1)
            try:
                for table in job["tables"]:
                    load(table)
                self.respond(200, json.dumps(engine.cursor().execute(job["query"]).fetchall(), default=str))
            except (duckdb.Error, OSError) as error:
                self.respond(400, str(error))
            finally:
                add(queries_running=-1, queries_finished_total=1)


host, port = sys.argv[1].split(":")
http.server.ThreadingHTTPServer((host, int(port)), Engine).serve_forever()
