// Package health decides whether an upstream is alive. Two state machines judge each upstream, independently of each other;
// an upstream gets jobs while neither speaks against it.
//
// The Breaker judges by failures:
//
//	            failures in a row; a connection refused or
//	            timed out; failed health checks
//	+--------+ ----------------------------------------> +------+ <------------+
//	| closed |                                           | open | -+ others'   |
//	+--------+ <---------------------------------------- +------+ <+ jobs fail |
//	    ^       an upstream that was down is reached;       |                  |
//	    |       a job that was sent past it succeeds        | a job enters     |
//	    |                                                   | after the        |
//	    | a job succeeds; an upstream that                  v open time        |
//	    | was down is reached                           +-----------+          |
//	    +---------------------------------------------- | half-open | ---------+
//	                                                    +-----------+
//	                                    the probe fails; checks fail; refused
//
// Suspicion judges an upstream that fails nothing because it does not respond at all:
//
//	+---------+  two reports in a row fail and no response begins;  +---------+
//	| trusted | --------------------------------------------------> | suspect |
//	+---------+  it owes more responses than chance explains        +---------+
//	     ^                                                               |
//	     +---------------------------------------------------------------+
//	          a response begins; a report arrives; it restarts
//
// A suspect that is not dead gets one job at a time to try it, after it owed nothing for a while.
//
// The machines own no clock, lock or random source: all are arguments.
package health
