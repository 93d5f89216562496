package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// A million inodes; ten thousand pods need four hundred thousand. The file is sparse.
const diskBytes = 16 << 30

// prepareScratch makes the directory, and a filesystem in it if one is asked for. The machine's own may
// be one without a journal, where ext4 searches long for an inode when many were just deleted: then
// the order of the rows decides what they cost.
func prepareScratch(o *options) error {
	scratch, err := filepath.Abs(o.scratch)
	if err != nil {
		return err
	}
	o.scratch = scratch
	if err := os.MkdirAll(o.scratch, 0o755); err != nil {
		return err
	}
	if o.disk == "loop" {
		if err := mountNewDisk(o.scratch); err != nil {
			return fmt.Errorf("--disk loop: %w", err)
		}
		o.scratch = filepath.Join(o.scratch, "disk")
	}
	return os.MkdirAll(filepath.Join(o.scratch, "host"), 0o755)
}

// The loop device and the mount end with this mount namespace, and the file with the device: its name
// is gone at once.
func mountNewDisk(scratch string) error {
	image, directory := filepath.Join(scratch, "disk.image"), filepath.Join(scratch, "disk")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	defer os.Remove(image)
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, diskBytes); err != nil {
		return err
	}
	// Nothing is initialised in the background while something is measured.
	for _, words := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,nodiscard", image},
		{"mount", "-t", "ext4", "-o", "loop,noinit_itable", image, directory},
	} {
		if said, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", words[0], err, said)
		}
	}
	return nil
}
