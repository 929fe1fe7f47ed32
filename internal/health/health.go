// Package health decides whether an upstream is alive. Two state machines judge each upstream independently. It gets
// jobs while its breaker is closed and it is not suspect.
//
// The Breaker judges by failures:
//
//	            failures; a connection is refused
//	            or times out; health checks fail
//	+--------+ ---------------------------------> +------+ <-----------+
//	| closed |                                    | open |             |
//	+--------+ <--------------------------------- +------+             | the trial fails;
//	    ^       down, and reached again;             |                 | a connection is refused
//	    |       a job sent past it succeeds          | a job enters    | or times out;
//	    |                                            | after the       | health checks fail
//	    |                                            v open time       |
//	    |       the trial's response starts;      +-----------+        |
//	    +---------------------------------------- | half-open | -------+
//	            down, and reached again           +-----------+
//
// While jobs of other sidecars or health checks fail, an open breaker opens again, for a longer time. If the jobs of other
// sidecars fail Settings.Failures times in a row, a closed breaker opens too.
//
// A response can take hours, so its start is a success: it closes the breaker after a trial, and in a closed breaker it
// resets the count of failures in a row. If a response is truncated later, that counts as one more failure. These two
// rules alone would never open the breaker of an upstream that truncates every response: each start would reset the
// count. So after a truncated response, starts do not reset the count; only the end of a complete response does. Some
// upstreams serve only endless streams, so a start also resets it once OpenMax has passed since the last truncated
// response. After Settings.Failures truncated responses without a complete one, the breaker opens, and from then on
// every further truncated response opens it at once, even if a trial has closed it in between. The end of a response
// does not count if the submitter disconnects.
//
// Suspicion finds upstreams that hang: they accept jobs and do not respond, so no attempt fails and the breaker stays
// closed.
//
//	             two polls in a row fail, and no response began;
//	+---------+  it owes more responses than chance explains       +---------+
//	| trusted | -------------------------------------------------> | suspect |
//	+---------+ <------------------------------------------------- +---------+
//	             a response begins; a newer report arrives; it restarts
//
// A suspect that has had no open job for a while gets one job to try it. An upstream whose health checks get no
// response is not suspect, because its breaker is open already. The jobs that wait there are moved to other upstreams, like those at a suspect.
//
// The machines have no clock, lock or random source of their own.
package health
