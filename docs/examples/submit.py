"""Submits the job on standard input: python3 submit.py <job.json >result"""
import os, sys, time, urllib.error, urllib.request

URL = os.environ.get("PILOTFISH_URL", "http://127.0.0.1:8080") + "/v1/jobs"


def submit(job):
    request = urllib.request.Request(URL, job, {"Content-Type": "application/json"})
    for attempt in range(5):
        wait = 2**attempt
        try:
            return urllib.request.urlopen(request)
        except urllib.error.HTTPError as refused:
            after = refused.headers.get("Retry-After")
            undone = after or refused.headers.get("Job-Started") in ("no", "withdrawn")
            if attempt == 4 or refused.code not in (429, 503) or not undone:
                raise  # the job has run, or is wrong, or there is no end to it
            wait = max(wait, int(after or 0))
        except urllib.error.URLError as failed:
            if attempt == 4 or not isinstance(failed.reason, ConnectionRefusedError):
                raise  # the job may have run
        print(f"nothing was done; again in {wait} s", file=sys.stderr)
        time.sleep(wait)


with submit(sys.stdin.buffer.read()) as response:
    result = response.read()  # fails if the response was truncated
    sys.stdout.buffer.write(result)
