package pool

import "time"

// maxEnds bounds the ends remembered of one upstream; a report forgets them
// every few seconds.
const maxEnds = 4096

// end is an attempt that ended.
type end struct {
	claimed, at time.Time
}

// ends are the attempts that ended since the last report, oldest first: what a
// report that was taken a moment ago and arrives now may still count.
type ends []end

func (es ends) add(e end) ends {
	if len(es) >= maxEnds {
		es = append(es[:0], es[maxEnds/2:]...)
	}
	return append(es, e)
}

// since drops the ends up to t.
func (es ends) since(t time.Time) ends {
	i := 0
	for i < len(es) && !es[i].at.After(t) {
		i++
	}
	return append(es[:0], es[i:]...)
}
