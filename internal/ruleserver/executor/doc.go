// Package executor runs the joblets of rule processing jobs on a number of
// cores, as the thesis's sections 3.4 and 3.5 describe.
//
// A job is a chain of joblets, each of which needs the result of the one before
// it. Joblets wait for a core in order of priority and then of their jobs'
// submission; one that runs is never interrupted. Equal joblets are one: a job
// that needs a result which is cached takes it, and one that needs a joblet
// which is running or waiting joins it. Results stay in a cache of bounded
// bytes that gives up its oldest entries first.
//
// The machine is a plain state machine without lock, goroutine or clock; the
// Executor is the shell around it that adds them.
package executor
