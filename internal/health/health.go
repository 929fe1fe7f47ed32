// Package health decides whether an upstream is alive. Two state machines judge each upstream independently. It gets jobs
// while neither speaks against it.
//
// The Breaker judges by failures:
//
//	            failures; a connection is refused
//	            or times out; health checks fail
//	+--------+ ---------------------------------> +------+ <-----------+
//	| closed |                                    | open |             |
//	+--------+ <--------------------------------- +------+             | the probe fails;
//	    ^       down, and reached again;             |                 | a connection is refused
//	    |       a job sent past it succeeds          | a job enters    | or times out;
//	    |                                            | after the       | health checks fail
//	    |                                            v open time       |
//	    |       the probe succeeds;               +-----------+        |
//	    +---------------------------------------- | half-open | -------+
//	            down, and reached again           +-----------+
//
// While jobs of other sidecars or health checks fail, an open breaker opens again, for a longer time.
//
// Suspicion judges an upstream that does not respond, so that nothing fails:
//
//	             two polls in a row fail, and no response began;
//	+---------+  it owes more responses than chance explains       +---------+
//	| trusted | -------------------------------------------------> | suspect |
//	+---------+ <------------------------------------------------- +---------+
//	             a response begins; a report arrives; it restarts
//
// A suspect that has owed nothing for a while gets one job to try it.
//
// The machines have no clock, lock or random source of their own.
package health
