//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// proxy is the running programs of a peer with their workers: a process group, whose CPU time and memory are summed.
type proxy struct {
	group   int // process group ID: the first process's ID
	output  string
	running sync.WaitGroup
	cancel  context.CancelFunc
}

// start starts a program of the group and waits until it accepts connections at an address. The program runs until
// ctx is done; the kernel kills it when bench dies.
func (p *proxy) start(ctx context.Context, network, address, path string, args ...string) error {
	file, err := os.OpenFile(p.output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() // the process has its own descriptor
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 200 * time.Millisecond // then it is killed
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Pgid: p.group}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	p.group = cmp.Or(p.group, cmd.Process.Pid)
	ready, ended := context.WithTimeout(ctx, 20*time.Second)
	p.running.Go(func() {
		defer ended()
		_ = cmd.Wait() // it always fails: the process is ended by a signal
	})
	for {
		c, err := (&net.Dialer{}).DialContext(ready, network, address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ready.Done():
			return fmt.Errorf("%s ended, or does not accept connections at %s: %s", path, address, p.said())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// said returns the last 2,000 bytes of the programs' output.
func (p *proxy) said() string {
	text, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

func (p *proxy) stop() {
	p.cancel()
	p.running.Wait()
}

// cpu returns the CPU time of all processes, user and system, in seconds.
func (p *proxy) cpu() (float64, error) {
	return p.sum(func(one procfs.Proc) (float64, error) {
		stat, err := one.Stat()
		return stat.CPUTime(), err
	})
}

// memory returns the proportional set size of all processes, in bytes.
func (p *proxy) memory() (float64, error) {
	return p.sum(func(one procfs.Proc) (float64, error) {
		memory, err := one.ProcSMapsRollup()
		return float64(memory.Pss), err
	})
}

// sum returns the sum of a figure over all processes of the group.
func (p *proxy) sum(of func(procfs.Proc) (float64, error)) (total float64, err error) {
	if p == nil { // no proxy
		return 0, nil
	}
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, one := range processes {
		if stat, err := one.Stat(); err != nil || stat.PGRP != p.group { // it has just ended, or is not ours
			continue
		}
		n, err := of(one)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
