-- Sends the bodies of the file BODIES, one to a line, as jobs to JOB_PATH, with the project
-- in the header PROJECT_HEADER unless that is empty. At the end it
-- writes one line of JSON.
local requests, at = {}, 0

function init(args)
  local headers, project = {["Content-Type"] = "application/json"}, os.getenv("PROJECT_HEADER")
  for body in io.lines(os.getenv("BODIES")) do
    if project ~= "" then
      headers[project] = body:match('"project_id":(%d+)')
    end
    requests[#requests + 1] = wrk.format("POST", os.getenv("JOB_PATH"), headers, body)
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
