package rules

// ParsePrefetch reads a prefetch request: a job's project_id, priority,
// timeouts and session_id, without operators. Its errors are all *Malformed.
func ParsePrefetch(body []byte) (Job, error) {
	job, err := ParseJob(body)
	if err != nil {
		return Job{}, err
	}
	if len(job.Shared.List)+len(job.Channel.List) > 0 {
		return Job{}, malformed("", "a prefetch applies no operators")
	}
	return job, nil
}
