// Package judge compares pilotfish's policy with tuned rivals on settings that nobody has
// seen: the seeds of all draws come from a hash of the judged sources.
package judge

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Judged lists the directories whose sources are judged.
func Judged() []string { return []string{"pkg/selection", "internal/pool", "internal/breaker"} }

// Hash is that of the judged sources below the repository's root, without their tests.
func Hash(root string) (string, error) {
	sum := sha256.New()
	for _, dir := range Judged() {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go")) // in order
		if err != nil {
			return "", err
		}
		if len(files) == 0 {
			return "", fmt.Errorf("%s: there is no source: is %s the repository?", filepath.Join(root, dir), root)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%s/%s %d\n%s", dir, filepath.Base(file), len(text), text)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// seedOf is the seed of a draw, which its names tell from all others.
func seedOf(names ...any) uint64 {
	sum := sha256.Sum256(fmt.Append(nil, names...))
	return binary.BigEndian.Uint64(sum[:]) >> 1
}
