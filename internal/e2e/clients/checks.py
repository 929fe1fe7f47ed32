"""What a submitter can do, it can do through pilotfish.

A submitter is an object with
  name                             for the report
  post(path, body, headers)        -> Answer; a body of bytes has a length,
                                   any other iterable goes out in chunks
  stream(path, body, headers)      -> an answer that is read as it comes: read()
                                   returns the next piece, b"" at its end, and
                                   close() leaves it
  connections()                    -> how many it has opened so far
"""

import hashlib
import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass

SIDECAR = os.environ["SIDECAR"]
CONTROL = os.environ["CONTROL"]
PIECES = 5
JSON = {"Content-Type": "application/json"}


@dataclass
class Answer:
    status: int
    headers: dict  # names in lower case
    body: bytes
    sent: dict  # the request's headers, names in lower case


def lower(headers):
    return {name.lower(): value for name, value in headers.items()}


def control(what):
    """Ask the upstreams; None for what they do not know."""
    try:
        with urllib.request.urlopen(f"{CONTROL}/{what}", timeout=60) as answer:
            return json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise AssertionError(f"{what} did not come about") from error


def equal(got, want, what):
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def job(s):
    """The example job is answered as without pilotfish."""
    with open(os.environ["JOB"], "rb") as file:
        body = file.read()
    with open(os.environ["TABLE"], "rb") as file:
        table = file.read()
    answer = s.post("/v1/jobs", body, {**JSON, "Accept": "text/csv"})
    equal((answer.status, answer.body), (200, table), "answer")


def refused(s):
    """A job that is malformed is refused by pilotfish, and not by an upstream."""
    answer = s.post("/probe/echo", b'{"project_id": 1', {**JSON, "Probe-Id": f"{s.name}-refused"})
    equal((answer.status, answer.headers.get("pilotfish-reason")), (400, "malformed-job"), "answer")
    equal(control(f"seen/{s.name}-refused"), None, "upstream")


def keep_alive(s):
    """Jobs that follow each other use one connection."""
    before = s.connections()
    for n in range(20):
        body = b'{"project_id": %d}' % n
        answer = s.post("/probe/echo", body, JSON)
        equal((answer.status, answer.body), (200, body), "answer")
    assert s.connections() - before <= 1, f"{s.connections() - before} connections"


def chunked(s):
    """A body without a length arrives whole."""
    parts = [b'{"project_id": 7, "pad": "'] + [b"0123456789abcdef" * 4096] * 48 + [b'"}']
    whole = b"".join(parts)
    answer = s.post("/probe/echo", iter(parts), {**JSON, "Probe-Id": f"{s.name}-chunked"})
    equal(answer.sent.get("transfer-encoding", "chunked"), "chunked", "framing")
    assert "content-length" not in answer.sent
    equal(answer.status, 200, "status")
    assert answer.body == whole, "the answer is not the body"
    arrived = control(f"seen/{s.name}-chunked")
    equal((arrived["bytes"], arrived["sha256"]), (len(whole), hashlib.sha256(whole).hexdigest()), "upstream")


def encoding(s):
    """pilotfish neither asks for compression nor undoes it."""
    body = b'{"project_id": 7, "pad": "' + b"x" * 5000 + b'"}'
    for n, asked in enumerate(("gzip", "identity")):
        probe = f"{s.name}-encoding-{n}"
        answer = s.post("/probe/echo", body, {**JSON, "Accept-Encoding": asked, "Probe-Id": probe})
        equal((answer.status, answer.body), (200, body), "answer")
        equal(answer.headers.get("content-encoding", "identity"), asked, "encoding of the answer")
        equal(control(f"seen/{probe}")["accept_encoding"], [asked], "upstream")


def streaming(s):
    """Each piece of an answer can be read before the next is written."""
    probe = f"{s.name}-streaming"
    answer = s.stream("/probe/stream", b'{"project_id": 7}', {**JSON, "Probe-Id": probe})
    for n in range(PIECES):
        equal(answer.read(), b"piece %d\n" % n, "piece")
        control(f"release/{probe}")
    equal(answer.read(), b"", "end")
    answer.close()
    control("idle")


def leaving_the_answer(s):
    """A submitter that leaves during an answer takes its job with it."""
    probe = f"{s.name}-leaving"
    answer = s.stream("/probe/stream", b'{"project_id": 7}', {**JSON, "Probe-Id": probe})
    equal(answer.read(), b"piece 0\n", "piece")
    answer.close()
    control(f"cancelled/{probe}")
    control("idle")


class Enough(Exception):
    """The submitter has had enough."""


def leaving_the_upload(s):
    """A submitter that leaves in the middle of its job has sent none."""
    probe = f"{s.name}-upload"

    def parts():
        yield b'{"project_id": 7, "pad": "' + b"x" * 200_000
        control("uploading")
        raise Enough

    try:
        answer = s.post("/probe/echo", parts(), {**JSON, "Probe-Id": probe})
    except Exception:  # each library has its own
        answer = None
    equal(answer, None, "answer")
    control("idle")
    equal(control(f"seen/{probe}"), None, "upstream")


CHECKS = [job, refused, keep_alive, chunked, encoding, streaming, leaving_the_answer, leaving_the_upload, job]


def run(s, version):
    """Run all checks; the last shows that the submitter still works after all that."""
    for check in CHECKS:
        check(s)
        print(f"{s.name} {version}: {check.__name__}: {check.__doc__}")
