//go:build !linux

package program

import "syscall"

// On other systems a process can outlive a test that is killed.
func endWithParent() *syscall.SysProcAttr { return nil }
