"""The checks by httpx."""

import httpx

import checks


class Stream:
    def __init__(self, context):
        self.context = context
        self.response = context.__enter__()
        checks.equal(self.response.status_code, 200, "status")
        self.pieces = self.response.iter_bytes()

    def read(self):
        return next(self.pieces, b"")

    def close(self):
        self.context.__exit__(None, None, None)


class Httpx:
    name = "httpx"

    def __init__(self):
        self.client = httpx.Client(timeout=60)
        self.opened = 0

    def trace(self, event, _):
        self.opened += event == "connection.connect_tcp.complete"

    def post(self, path, body, headers):
        r = self.client.post(checks.SIDECAR + path, content=body, headers=headers, extensions={"trace": self.trace})
        return checks.Answer(r.status_code, checks.lower(r.headers), r.content, checks.lower(r.request.headers))

    def stream(self, path, body, headers):
        return Stream(self.client.stream("POST", checks.SIDECAR + path, content=body, headers=headers))

    def connections(self):
        return self.opened


checks.run(Httpx(), httpx.__version__)
