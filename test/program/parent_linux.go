package program

import "syscall"

// endWithParent returns the attributes of a process that the kernel kills when this one ends.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
