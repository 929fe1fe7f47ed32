"""The checks by aiohttp."""

import asyncio

import aiohttp

import checks


class Stream:
    def __init__(self, loop, response):
        self.loop, self.response = loop, response

    def read(self):
        return self.loop.run_until_complete(self.response.content.readany())

    def close(self):
        self.response.close()
        self.loop.run_until_complete(asyncio.sleep(0))  # the loop closes the connection


async def generated(pieces):
    """What may block in another thread, as the pieces of a body."""
    while piece := await asyncio.to_thread(next, pieces, None):
        yield piece


class Aiohttp:
    name = "aiohttp"

    def __init__(self, loop):
        self.loop = loop
        self.opened = 0
        loop.run_until_complete(self.open())

    async def open(self):
        trace = aiohttp.TraceConfig()
        trace.on_connection_create_end.append(self.count)
        timeout = aiohttp.ClientTimeout(total=60)
        self.session = aiohttp.ClientSession(trace_configs=[trace], timeout=timeout)

    async def count(self, *_):
        self.opened += 1

    async def send(self, path, body, headers):
        data = body if isinstance(body, bytes) else generated(body)
        return await self.session.post(checks.SIDECAR + path, data=data, headers=headers)

    async def exchange(self, *request):
        async with await self.send(*request) as r:
            sent = checks.lower(r.request_info.headers)
            return checks.Answer(r.status, checks.lower(r.headers), await r.read(), sent)

    def post(self, path, body, headers):
        return self.loop.run_until_complete(self.exchange(path, body, headers))

    def stream(self, path, body, headers):
        r = self.loop.run_until_complete(self.send(path, body, headers))
        checks.equal(r.status, 200, "status")
        return Stream(self.loop, r)

    def connections(self):
        return self.opened


with asyncio.Runner() as runner:
    submitter = Aiohttp(runner.get_loop())
    checks.run(submitter, aiohttp.__version__)
    runner.run(submitter.session.close())
