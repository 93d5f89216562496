package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cgroup holds one program and all that it starts, so that processor time is told of processes that
// have ended as well. It needs no controller.
type cgroup struct {
	path string
	dir  *os.File
}

func newCgroup(name string) (*cgroup, error) {
	parent, err := cgroup2Mount()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(parent, fmt.Sprintf("volumed-beside-%d-%s", os.Getpid(), name))
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, fmt.Errorf("processor time is counted by a cgroup: %w", err)
	}
	dir, err := os.Open(path)
	return &cgroup{path, dir}, err
}

func cgroup2Mount() (string, error) {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer table.Close()
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		if strings.HasPrefix(after, "cgroup2 ") {
			return strings.Fields(before)[4], nil
		}
	}
	return "", fmt.Errorf("processor time is counted by a cgroup, and no cgroup2 is mounted")
}

// cpu is user and system time of all processes, alive or not.
func (c *cgroup) cpu() (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(c.path, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if value, ok := strings.CutPrefix(line, "usage_usec "); ok {
			micros, err := strconv.ParseInt(value, 10, 64)
			return time.Duration(micros) * time.Microsecond, err
		}
	}
	return 0, fmt.Errorf("%s/cpu.stat has no usage_usec", c.path)
}

func (c *cgroup) processes() []string {
	text, err := os.ReadFile(filepath.Join(c.path, "cgroup.procs"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// kill ends whatever is left in the cgroup, and nothing else. A cgroup in which something was killed so
// is not used again: Linux 6.18 kills at once what is cloned into it from outside.
func (c *cgroup) kill() error {
	if len(c.processes()) == 0 {
		return nil
	}
	if err := os.WriteFile(filepath.Join(c.path, "cgroup.kill"), []byte("1"), 0); err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); len(c.processes()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end", c.processes())
		}
	}
	return nil
}

// remove waits a little: processes that are just ending are listed no more, and are still in it.
func (c *cgroup) remove() error {
	c.dir.Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if err := os.Remove(c.path); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// pss is the proportional set size of all processes: memory that they share counts once.
func (c *cgroup) pss() (bytes int64, processes int) {
	for _, pid := range c.processes() {
		text, err := os.ReadFile(filepath.Join("/proc", pid, "smaps_rollup"))
		if err != nil {
			continue // it has just ended
		}
		processes++
		for _, line := range strings.Split(string(text), "\n") {
			if value, ok := strings.CutPrefix(line, "Pss:"); ok {
				kilobytes, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
				bytes += kilobytes << 10
			}
		}
	}
	return bytes, processes
}
