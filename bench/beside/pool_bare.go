package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const poolVolumeBytes = 1 << 30

// volumeWay is one way to have volumes: a driver's, or the system calls' alone.
type volumeWay interface {
	create(name string, bytes int64) (id string, err error)
	remove(id string) error
	// bring attaches, stages and publishes; take is the inverse. The first bring of an image formats it.
	bring(id string) error
	take(id string) error
	targetOf(id string) string
	cpu() (time.Duration, error) // of all its processes
}

// bareWay makes the system calls, and runs mkfs, that such a volume cannot do without. It writes
// nothing down, syncs nothing and checks nothing.
type bareWay struct {
	backend string // as in --backends
	pool    string // a directory of the pool's filesystem
	places  string // where volumes are staged and published
}

func (w bareWay) fsType() string            { return strings.TrimPrefix(w.backend, "image-") }
func (w bareWay) isImage() bool             { return strings.HasPrefix(w.backend, "image-") }
func (w bareWay) content(id string) string  { return filepath.Join(w.pool, id) }
func (w bareWay) staging(id string) string  { return filepath.Join(w.places, id, "staging") }
func (w bareWay) targetOf(id string) string { return filepath.Join(w.places, id, "target") }

func (w bareWay) cpu() (time.Duration, error) {
	total := time.Duration(0)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			return 0, err
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total, nil
}

func (w bareWay) create(name string, bytes int64) (string, error) {
	switch {
	case w.isImage():
		file, err := os.OpenFile(w.content(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		return name, errors.Join(file.Truncate(bytes), file.Close())
	case w.backend == "directory":
		return name, os.Mkdir(w.content(name), 0o755)
	default:
		return name, command("btrfs", "-q", "subvolume", "create", w.content(name))
	}
}

func (w bareWay) remove(id string) error {
	if w.backend == "subvolume" {
		return command("btrfs", "-q", "subvolume", "delete", w.content(id))
	}
	return os.Remove(w.content(id))
}

func (w bareWay) bring(id string) error {
	for _, directory := range []string{w.staging(id), w.targetOf(id)} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return err
		}
	}
	if !w.isImage() {
		return unix.Mount(w.content(id), w.targetOf(id), "", unix.MS_BIND, "")
	}
	device, err := attachBare(w.content(id))
	if err != nil {
		return err
	}
	err = unix.Mount(device, w.staging(id), w.fsType(), 0, "")
	if err == unix.EINVAL || err == unix.EUCLEAN { // there is no filesystem yet
		if err = command("mkfs."+w.fsType(), "-q", device); err == nil {
			err = unix.Mount(device, w.staging(id), w.fsType(), 0, "")
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	return unix.Mount(w.staging(id), w.targetOf(id), "", unix.MS_BIND, "")
}

func (w bareWay) take(id string) error {
	if err := unix.Unmount(w.targetOf(id), 0); err != nil {
		return err
	}
	if err := os.Remove(w.targetOf(id)); err != nil || !w.isImage() {
		return err
	}
	if err := unix.Unmount(w.staging(id), 0); err != nil {
		return err
	}
	return detachBare(w.content(id))
}

// attachBare takes a free loop device; another program may take that one first.
func attachBare(image string) (string, error) {
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer control.Close()
	for range 100 {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return "", err
		}
		path := fmt.Sprintf("/dev/loop%d", number)
		device, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return "", err
		}
		config := unix.LoopConfig{Fd: uint32(file.Fd()), Size: 4096}
		config.Info.Flags = unix.LO_FLAGS_DIRECT_IO
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		device.Close()
		if err != unix.EBUSY {
			return path, err
		}
	}
	return "", errors.New("no loop device is free")
}

func detachBare(image string) error {
	for _, device := range loopsOf(func(file string) bool { return file == image }) {
		file, err := os.OpenFile(device, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		err = unix.IoctlSetInt(int(file.Fd()), unix.LOOP_CLR_FD, 0)
		file.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", device, err)
		}
	}
	return nil
}

// loopsOf has the loop devices on files that are wanted.
func loopsOf(wanted func(file string) bool) []string {
	var devices []string
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err == nil && wanted(strings.TrimSpace(string(text))) {
			devices = append(devices, "/dev/"+strings.Split(name, "/")[3])
		}
	}
	return devices
}

// loopNodes has the names of all loop devices, with a file or without.
func loopNodes() []string {
	paths, _ := filepath.Glob("/sys/block/loop*")
	for i, path := range paths {
		paths[i] = filepath.Base(path)
	}
	return paths
}

// removeLoopNodes takes away the loop devices that have no file and were not there before: the kernel keeps
// each that there ever was.
func removeLoopNodes(before []string) error {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer control.Close()
	for _, name := range loopNodes() {
		number, err := strconv.Atoi(strings.TrimPrefix(name, "loop"))
		if err != nil || slices.Contains(before, name) {
			continue
		}
		if err := unix.IoctlSetInt(int(control.Fd()), unix.LOOP_CTL_REMOVE, number); err != nil && err != unix.EBUSY {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}
