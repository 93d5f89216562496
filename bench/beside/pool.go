package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
)

// poolOptions are of `beside pool`: volumed's own CSI driver beside the bare system calls for the same
// volumes, and beside the driver of persistent disks, each by its socket.
type poolOptions struct {
	volumed, pd, scratch, results string
	backends, rows                []string
	count, rounds, callers, many  int
	fillMiB, cuts                 int
}

var (
	allPoolBackends = []string{"image-ext4", "image-xfs", "directory", "subvolume"}
	allPoolRows     = []string{"volumes", "snapshot", "many"}
)

func parsePoolOptions(words []string) (poolOptions, error) {
	var o poolOptions
	var backends, rows string
	flags := flag.NewFlagSet("pool", flag.ExitOnError)
	flags.StringVar(&o.volumed, "volumed", "", "the volumed program, which finds its volumed-worker")
	flags.StringVar(&o.pd, "pd", "", "the program of tests/interop/pd (scripts/peers path pd); empty: it is not measured")
	flags.StringVar(&o.scratch, "scratch", "/var/tmp/volumed-beside-pool", "where the pools' disks are made, as files")
	flags.StringVar(&o.results, "results", "pool.jsonl", "JSON lines are added here")
	flags.StringVar(&backends, "backends", strings.Join(allPoolBackends, ","), "which of "+strings.Join(allPoolBackends, ","))
	flags.StringVar(&rows, "rows", "volumes,snapshot", "which of "+strings.Join(allPoolRows, ","))
	flags.IntVar(&o.count, "count", 40, "how many volumes, and how often one comes and goes")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each is measured")
	flags.IntVar(&o.callers, "callers", 8, "how many volumes come and go at a time, besides one")
	flags.IntVar(&o.many, "many", 1000, "row many: how many volumes are there at the same time")
	flags.IntVar(&o.fillMiB, "fill", 2048, "row snapshot: MiB that are in the image of 10 GiB")
	flags.IntVar(&o.cuts, "cuts", 100, "row snapshot: how many snapshots of each kind")
	flags.Parse(words)
	o.backends, o.rows = strings.Split(backends, ","), strings.Split(rows, ",")
	return o, o.check()
}

var interrupted atomic.Bool

// unlessInterrupted does one step of what is measured.
func unlessInterrupted(work func() error) error {
	if interrupted.Load() {
		return errors.New("interrupted")
	}
	return work()
}

func (o *poolOptions) check() error {
	for _, backend := range o.backends {
		if !slices.Contains(allPoolBackends, backend) {
			return fmt.Errorf("--backends: there is no %q", backend)
		}
	}
	for _, row := range o.rows {
		if !slices.Contains(allPoolRows, row) {
			return fmt.Errorf("--rows: there is no row %q", row)
		}
	}
	if min(o.count, o.rounds, o.callers, o.cuts, o.many) < 1 {
		return errors.New("--count, --rounds, --callers, --cuts and --many are at least 1")
	}
	for _, file := range []string{o.volumed, o.pd} {
		if _, err := os.Stat(file); file != "" && err != nil {
			return err
		}
	}
	if o.volumed == "" {
		return errors.New("--volumed is needed")
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root: it mounts")
	}
	return nil
}

func runPool(words []string) error {
	o, err := parsePoolOptions(words)
	if err != nil {
		return err
	}
	if inOwnNamespace, err := enterOwnMountNamespace(); err != nil || !inOwnNamespace {
		return err
	}
	if o.scratch, err = filepath.Abs(o.scratch); err != nil {
		return err
	}
	report, err := newReport(options{results: o.results})
	if err != nil {
		return err
	}
	b := &poolBench{options: o, report: report, loopNodes: loopNodes()}
	// An interrupt ends the measuring between two calls, so that nothing is left half done: neither
	// programs nor loop devices. The mounts end by themselves.
	// Several come, as from a terminal and from the process outside of the namespace, which ends first.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for range interrupts {
			interrupted.Store(true)
		}
	}()
	defer b.end()
	return b.run()
}

// preparePoolDisks makes a filesystem for each kind of pool, in a sparse file: xfs for images and
// directories, and btrfs for subvolumes. `bytes` is what all volumes are promised at most.
func preparePoolDisks(scratch string, bytes int64) error {
	for _, kind := range []string{"xfs", "btrfs"} {
		image, directory := filepath.Join(scratch, kind+".image"), filepath.Join(scratch, kind)
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			return err
		}
		defer os.Remove(image) // the file ends with its loop device
		if err := os.Truncate(image, max(4*diskBytes, bytes+bytes/8)); err != nil {
			return err
		}
		for _, words := range [][]string{{"mkfs." + kind, "-q", image}, {"mount", "-t", kind, "-o", "loop", image, directory}} {
			if err := command(words...); err != nil {
				return err
			}
		}
	}
	return command("btrfs", "quota", "enable", filepath.Join(scratch, "btrfs"))
}

func command(words ...string) error {
	if said, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, said)
	}
	return nil
}
