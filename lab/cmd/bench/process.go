//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// proxy is the programs of a peer. Their processor time and memory count together.
type proxy []*process

// cpu is the time that all have run, in user and in kernel mode.
func (p proxy) cpu() (time.Duration, error) { return sum(p, (*process).cpu) }

// memory is the memory of all in bytes. What the processes of a program share counts once.
func (p proxy) memory() (int64, error) { return sum(p, (*process).memory) }

func sum[T ~int64](all proxy, of func(*process) (T, error)) (total T, err error) {
	for _, p := range all {
		n, err := of(p)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// said is the end of what the programs have written.
func (p proxy) said() (text string) {
	for _, one := range p {
		text += one.said()
	}
	return text
}

func (p proxy) stop() {
	for _, one := range p {
		one.stop()
	}
}

// process is a program that runs until stop. The kernel ends it when bench dies.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed when it has ended
	output string        // the file that it writes to
}

// start starts a program that writes its standard output and error to a file.
func start(output, path string, args ...string) (*process, error) {
	file, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the process has its own
	p := &process{cmd: exec.Command(path, args...), ended: make(chan struct{}), output: output}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	go func() {
		_ = p.cmd.Wait() // that it was stopped is no news
		close(p.ended)
	}()
	return p, nil
}

// ready waits until the program accepts connections at an address of a network.
func (p *process) ready(ctx context.Context, network, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %s", p.cmd.Path, p.said())
		case <-ctx.Done():
			return fmt.Errorf("%s does not accept connections at %s: %s", p.cmd.Path, address, p.said())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// said is the end of what the program has written.
func (p *process) said() string {
	text, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// stop ends the program: politely, then by force.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	select {
	case <-p.ended:
		return
	case <-time.After(200 * time.Millisecond):
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// family returns the process and its children, such as the workers of nginx.
func (p *process) family() (all procfs.Procs, err error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	for _, one := range processes {
		stat, err := one.Stat()
		if err == nil && (stat.PID == p.cmd.Process.Pid || stat.PPID == p.cmd.Process.Pid) { // else it has ended meanwhile
			all = append(all, one)
		}
	}
	return all, nil
}

// cpu is the time that the process and its children have run, in user and in kernel mode.
func (p *process) cpu() (total time.Duration, err error) {
	all, err := p.family()
	for _, one := range all {
		stat, err := one.Stat()
		if err != nil {
			return 0, err
		}
		total += time.Duration(stat.CPUTime() * float64(time.Second))
	}
	return total, err
}

// memory is the memory of the process and its children in bytes. What they share counts once.
func (p *process) memory() (total int64, err error) {
	all, err := p.family()
	for _, one := range all {
		memory, err := one.ProcSMapsRollup()
		if err != nil {
			return 0, err
		}
		total += int64(memory.Pss)
	}
	return total, err
}
