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

// proxy is the programs of a peer, with their workers: a process group. Their processor time and memory count together.
type proxy struct {
	group   int // the number of the first process
	output  string
	running sync.WaitGroup
	cancel  context.CancelFunc
}

// start starts a program of the group, and waits until it accepts connections at an address of a network. It runs until
// ctx ends; the kernel ends it when bench dies.
func (p *proxy) start(ctx context.Context, network, address, path string, args ...string) error {
	file, err := os.OpenFile(p.output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() // the process has its own
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 200 * time.Millisecond // then by force
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Pgid: p.group}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	p.group = cmp.Or(p.group, cmd.Process.Pid)
	ready, ended := context.WithTimeout(ctx, 20*time.Second)
	p.running.Go(func() {
		defer ended()
		_ = cmd.Wait() // that it was stopped is no news
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

// said is the end of what the programs have written.
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

// cpu is the time that all have run, in user and in kernel mode, in seconds.
func (p *proxy) cpu() (float64, error) {
	return p.sum(func(one procfs.Proc) (float64, error) {
		stat, err := one.Stat()
		return stat.CPUTime(), err
	})
}

// memory is the memory of all in bytes. What they share counts once.
func (p *proxy) memory() (float64, error) {
	return p.sum(func(one procfs.Proc) (float64, error) {
		memory, err := one.ProcSMapsRollup()
		return float64(memory.Pss), err
	})
}

// sum adds a figure of all processes of the group.
func (p *proxy) sum(of func(procfs.Proc) (float64, error)) (total float64, err error) {
	if p == nil { // nothing
		return 0, nil
	}
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, one := range processes {
		if stat, err := one.Stat(); err != nil || stat.PGRP != p.group { // it has ended meanwhile, or is not ours
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
