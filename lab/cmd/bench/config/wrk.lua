-- Sends the bodies of the file BODIES, one to a line, as jobs to JOB_PATH. At the end it
-- writes one line of JSON.
local requests, at = {}, 0

function init(args)
  for body in io.lines(os.getenv("BODIES")) do
    requests[#requests + 1] = wrk.format("POST", os.getenv("JOB_PATH"), {["Content-Type"] = "application/json"}, body)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\n{"jobs":%d,"microseconds":%d,"p50":%d,"failed":%d}\n', summary.requests,
    summary.duration, latency:percentile(50), e.connect + e.read + e.write + e.status + e.timeout))
end
