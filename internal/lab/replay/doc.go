// Package replay submits the jobs of a trace to real sidecars, or to real
// upstreams, at the times that the trace tells, and measures what the submitter
// sees. A submitter waits for nobody: a job is due when the trace says so, however
// late the answers to others are, so that slow upstreams do not hide their own
// slowness. What a job costs goes along in a header, for reference servers that
// trust it.
package replay
