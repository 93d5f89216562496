package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// poolBench measures each row by all ways in turns, the first of a round being another one each time.
type poolBench struct {
	options poolOptions
	report  *report
	drivers []*driverWay // that run
	// The names of loop devices that were there before.
	loopNodes []string
}

type namedWay struct {
	name string
	way  volumeWay
}

func (b *poolBench) run() error {
	if err := os.MkdirAll(b.options.scratch, 0o755); err != nil {
		return err
	}
	if err := b.report.machine(options{scratch: b.options.scratch}); err != nil {
		return err
	}
	if err := preparePoolDisks(b.options.scratch, b.options.promised()); err != nil {
		return err
	}
	volumed, err := b.start(startVolumedDriver)
	if err != nil {
		return err
	}
	var pd *driverWay
	if b.options.pd != "" {
		if pd, err = b.start(startPd); err != nil {
			return err
		}
	}
	for round := range b.options.rounds {
		for _, backend := range b.options.backends {
			ways := b.ways(backend, volumed, pd)
			if err := errors.Join(b.volumes(backend, round, ways), b.many(backend, round, ways)); err != nil {
				return fmt.Errorf("%s: %w", backend, err)
			}
		}
		if err := b.snapshots(round, volumed); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	return nil
}

func (b *poolBench) start(start func(poolOptions) (*driverWay, error)) (*driverWay, error) {
	way, err := start(b.options)
	if err == nil {
		b.drivers = append(b.drivers, way)
	}
	return way, err
}

// end leaves no process, no cgroup and no loop device on a file of a pool. What is mounted ends with the
// mount namespace, and the pools' own disks with it.
func (b *poolBench) end() {
	var problems []error
	for _, driver := range b.drivers {
		problems = append(problems, driver.end())
	}
	b.drivers = nil
	if ids, err := mountIDs(b.options.scratch); err == nil {
		mounted := make([]string, 0, len(ids))
		for path := range ids {
			if relative, _ := filepath.Rel(b.options.scratch, path); relative != "xfs" && relative != "btrfs" {
				mounted = append(mounted, path)
			}
		}
		slices.Sort(mounted)
		for _, path := range slices.Backward(mounted) {
			problems = append(problems, unix.Unmount(path, unix.MNT_DETACH))
		}
	}
	for _, disk := range []string{"xfs", "btrfs"} {
		pool := filepath.Join(b.options.scratch, disk) + "/"
		for _, device := range loopsOf(func(file string) bool { return len(file) > len(pool) && file[:len(pool)] == pool }) {
			problems = append(problems, command("losetup", "--detach", device))
		}
		if err := unix.Unmount(filepath.Join(b.options.scratch, disk), 0); err != nil && err != unix.EINVAL {
			problems = append(problems, fmt.Errorf("unmount %s: %w", disk, err))
		}
	}
	problems = append(problems, removeLoopNodes(b.loopNodes))
	if err := errors.Join(problems...); err != nil {
		fmt.Fprintln(os.Stderr, "beside: something is left in "+b.options.scratch+":", err)
		return
	}
	os.RemoveAll(b.options.scratch)
}

func (b *poolBench) ways(backend string, volumed, pd *driverWay) []namedWay {
	disk := "xfs"
	if backend == "subvolume" {
		disk = "btrfs"
	}
	bare := bareWay{backend: backend, pool: filepath.Join(b.options.scratch, disk, "bare"), places: filepath.Join(b.options.scratch, "bare-places")}
	if !bare.isImage() {
		own := volumed.of("", map[string]string{"pool": disk, "backend": backend, "quota": "best-effort"})
		return []namedWay{{"volumed", own}, {"bare", bare}}
	}
	ways := []namedWay{{"volumed", volumed.of(bare.fsType(), map[string]string{"pool": disk})}, {"bare", bare}}
	if pd != nil {
		ways = append(ways, namedWay{"pd", pd.of(bare.fsType(), nil)})
	}
	return ways
}

func (b *poolBench) volumes(backend string, round int, ways []namedWay) error {
	if !slices.Contains(b.options.rows, "volumes") {
		return nil
	}
	for turn := range ways {
		way := ways[(turn+round)%len(ways)]
		if err := makeBarePool(way.way); err != nil {
			return err
		}
		values, err := b.lives(way.way, fmt.Sprintf("%s-%d", backend, round))
		if err == nil {
			err = b.comeAndGo(way.way, fmt.Sprintf("%s-again-%d", backend, round), values)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		b.report.repeated(way.name, b.options.count, round, "pool "+backend, values)
	}
	return nil
}

func makeBarePool(way volumeWay) error {
	if bare, ok := way.(bareWay); ok {
		return os.MkdirAll(bare.pool, 0o755)
	}
	return nil
}

// lives has each volume made, brought for the first time, which formats an image, taken, and deleted.
func (b *poolBench) lives(way volumeWay, name string) (map[string]float64, error) {
	const steps = 4
	var took [steps][]time.Duration
	for i := range b.options.count {
		var id string
		for step, work := range [steps]func() error{
			func() (err error) { id, err = way.create(fmt.Sprintf("%s-%d", name, i), poolVolumeBytes); return err },
			func() error { return way.bring(id) },
			func() error { return way.take(id) },
			func() error { return way.remove(id) },
		} {
			began := time.Now()
			if err := unlessInterrupted(work); err != nil {
				return nil, err
			}
			took[step] = append(took[step], time.Since(began))
		}
	}
	pairs := make([]time.Duration, b.options.count)
	for i := range pairs {
		pairs[i] = took[0][i] + took[3][i]
	}
	return map[string]float64{
		"create_p50_ms": percentile(took[0], 0.5), "delete_p50_ms": percentile(took[3], 0.5),
		"create_delete_p50_ms": percentile(pairs, 0.5), "create_delete_per_second": perSecond(pairs),
		"first_p50_ms": percentile(took[1], 0.5),
	}, nil
}

// comeAndGo brings and takes volumes that have been there before: one, and several at a time.
func (b *poolBench) comeAndGo(way volumeWay, name string, values map[string]float64) error {
	ids := make([]string, b.options.callers)
	for i := range ids {
		var err error
		if ids[i], err = way.create(fmt.Sprintf("%s-%d", name, i), poolVolumeBytes); err != nil {
			return err
		}
		if err = errors.Join(way.bring(ids[i]), way.take(ids[i])); err != nil {
			return err
		}
	}
	before, err := way.cpu()
	if err != nil {
		return err
	}
	alone, _, err := cycles(way, ids[:1], b.options.count)
	if err != nil {
		return err
	}
	after, err := way.cpu()
	if err != nil {
		return err
	}
	values["cycle_p50_ms"], values["cycle_p99_ms"] = percentile(alone, 0.5), percentile(alone, 0.99)
	values["cycle_per_second"] = perSecond(alone)
	values["cycle_cpu_ms"] = milliseconds(after-before) / float64(b.options.count)
	together, wall, err := cycles(way, ids, b.options.count)
	if err != nil {
		return err
	}
	values["together_p50_ms"] = percentile(together, 0.5)
	values["together_per_second"] = float64(len(together)) / wall.Seconds()
	for _, id := range ids {
		if err := way.remove(id); err != nil {
			return err
		}
	}
	return nil
}

// cycles has each volume come and go so often, all of them beside each other.
func cycles(way volumeWay, ids []string, count int) ([]time.Duration, time.Duration, error) {
	took := make([][]time.Duration, len(ids))
	problems := make([]error, len(ids))
	began := time.Now()
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() {
			for range count {
				begun := time.Now()
				problems[i] = unlessInterrupted(func() error { return errors.Join(way.bring(id), way.take(id)) })
				if problems[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(begun))
			}
		})
	}
	group.Wait()
	return slices.Concat(took...), time.Since(began), errors.Join(problems...)
}

func perSecond(took []time.Duration) float64 {
	var total time.Duration
	for _, one := range took {
		total += one
	}
	return float64(len(took)) / total.Seconds()
}
