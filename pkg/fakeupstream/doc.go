// Package fakeupstream is a rule processing server for go test: a real one, with
// executor, cache, metrics and cache listing, that records what it is sent and
// misbehaves on command.
//
//	up := fakeupstream.New(t, fakeupstream.Options{})
//	up.SetFault(fakeupstream.Fault{Status: 503, Times: 1}) // the first job fails
//	… send two jobs to up.URL …
//	jobs := up.Jobs() // headers and bodies of both
//
// Every project has the feed of the thesis's table 1 unless Options.Feeds says
// otherwise, so any job gets an answer. ThesisJob is one to send.
//
// All methods are safe for concurrent use, and take effect at once: what hangs
// or stalls because of a fault goes on when the fault is replaced.
package fakeupstream
