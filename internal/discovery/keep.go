package discovery

import (
	"time"
)

// restore makes the snapshot the good set, if there is one and no set is known
// yet, and says whether it did.
func (d *Discovery) restore() bool {
	if d.snapshot == nil || d.guard.Known() {
		return false
	}
	set, err := d.snapshot.read()
	d.noteSnapshot(err)
	if set = arrange(set, d.own); len(set) == 0 {
		return false
	}
	d.guard.Restore(set)
	return true
}

// save writes the set in force to the snapshot.
func (d *Discovery) save(now time.Time) {
	if d.snapshot != nil {
		d.noteSnapshot(d.snapshot.write(now, d.guard.Applied()))
	}
}

func (d *Discovery) noteSnapshot(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.SnapshotErr = err
}
