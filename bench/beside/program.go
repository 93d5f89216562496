package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// program is one of the two that are measured.
type program interface {
	common() *process
	// start returns once the program answers. It finds what it had been given.
	start() error
	// prepare makes ready what gives it these pods, so that only the giving is measured.
	prepare(uids []string) (give func() error, err error)
	putObjects(manifest string) error
	takeAway(uids []string) error
	// waitAllReady returns once the program itself says that these pods, which are all that it has, are
	// ready. Errors: of the context, when it is not in time.
	waitAllReady(ctx context.Context, uids []string) error
	// syncNow makes it do at once what it would do in its next look at its pods.
	syncNow() error
	// queries are what an operator asks, by name.
	queries() map[string]func() error
}

// process is what the two have in common: a directory, a cgroup, and the processors that it may use.
type process struct {
	name    string
	scratch string // its own directory
	cores   int
	group   *cgroup
	command *exec.Cmd
}

func newProcess(name, scratch string, cores int) (*process, error) {
	group, err := newCgroup(name)
	return &process{name: name, scratch: filepath.Join(scratch, name), cores: cores, group: group}, err
}

func (p *process) common() *process { return p }
func (p *process) root() string     { return filepath.Join(p.scratch, "root") }

func (p *process) spawn(words ...string) error {
	if err := os.MkdirAll(p.scratch, 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(p.scratch, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.command = exec.Command(words[0], words[1:]...)
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(p.group.dir.Fd())}
	return onProcessors(p.cores, true, p.command.Start)
}

// kill ends the main process as a crash does, and leaves its workers to themselves.
func (p *process) kill() error {
	if p.command == nil {
		return nil
	}
	err := p.command.Process.Kill()
	p.command.Wait()
	p.command = nil
	return err
}

// clean ends everything and removes what it made.
func (p *process) clean() error {
	if err := p.kill(); err != nil {
		return err
	}
	if err := p.group.kill(); err != nil {
		return err
	}
	ids, err := mountIDs(p.scratch)
	if err != nil {
		return err
	}
	mounted := make([]string, 0, len(ids))
	for path := range ids {
		mounted = append(mounted, path)
	}
	slices.Sort(mounted)
	for _, path := range slices.Backward(mounted) { // what is beneath first
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	return os.RemoveAll(p.scratch)
}

// onProcessors does `work` on a thread that may use the first `cores` processors, or the others. What
// it starts inherits that. All are used when `cores` is 0, and for the driver when none is left.
func onProcessors(cores int, first bool, work func() error) error {
	if cores == 0 {
		return work()
	}
	var own, wanted unix.CPUSet
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return err
	}
	for processor, counted := 0, 0; processor < len(own)*64 && counted < runtime.NumCPU(); processor++ {
		if !own.IsSet(processor) {
			continue
		}
		if (counted < cores) == first {
			wanted.Set(processor)
		}
		counted++
	}
	if wanted.Count() == 0 {
		return work()
	}
	if first && wanted.Count() < cores {
		return fmt.Errorf("--cores %d: there are %d", cores, wanted.Count())
	}
	if err := unix.SchedSetaffinity(0, &wanted); err != nil {
		return err
	}
	defer unix.SchedSetaffinity(0, &own)
	return work()
}
