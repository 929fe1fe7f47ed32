"""The checks by requests."""

import requests

import checks


class Stream:
    def __init__(self, response):
        self.response = response
        self.pieces = response.iter_content(chunk_size=None)

    def read(self):
        return next(self.pieces, b"")

    def close(self):
        self.response.close()


class Requests:
    name = "requests"

    def __init__(self):
        self.session = requests.Session()

    def post(self, path, body, headers):
        r = self.session.post(checks.SIDECAR + path, data=body, headers=headers, timeout=60)
        return checks.Answer(r.status_code, checks.lower(r.headers), r.content, checks.lower(r.request.headers))

    def stream(self, path, body, headers):
        r = self.session.post(checks.SIDECAR + path, data=body, headers=headers, timeout=60, stream=True)
        checks.equal(r.status_code, 200, "status")
        return Stream(r)

    def connections(self):
        pools = self.session.get_adapter(checks.SIDECAR).poolmanager.pools
        return sum(pools[key].num_connections for key in pools.keys())


checks.run(Requests(), requests.__version__)
