package memory

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// systemLimit returns the memory of the machine or the limit of the process's cgroups, whichever is
// less, in bytes. A missing file means no limit.
func systemLimit(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	text := read(root, "proc/meminfo")
	var kib int64
	if n, _ := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); n == 1 {
		least = kib << 10
	}
	text = read(root, "proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(line, ":")
		switch controllers {
		case "": // cgroup v2
			least = min(least, cgroupLimit(root, "sys/fs/cgroup", group, "memory.max", "memory.high"))
		case "memory": // v1
			least = min(least, cgroupLimit(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
		}
	}
	return least
}

// cgroupLimit returns the lowest limit of a cgroup and its parents. In a container,
// mount itself can be the cgroup; the path group then does not exist, and the limit is that of mount.
func cgroupLimit(root fs.FS, mount, group string, files ...string) int64 {
	least := int64(math.MaxInt64)
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		for _, file := range files {
			text := read(root, path.Join(mount, group, file))
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil { // not "max"
				least = min(least, n)
			}
		}
		if group == "/" {
			return least
		}
	}
}

// maxFile is the size in bytes up to which a file of the kernel is read.
const maxFile = 64 << 10

// read returns the beginning of a file. It is empty if the file cannot be read.
func read(root fs.FS, name string) []byte {
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxFile))
	return text
}
