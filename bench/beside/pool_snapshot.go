package main

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

const (
	cutImageBytes = 10 << 30
	writtenBytes  = 256 << 20 // of the file of the writer
)

// What the writer writes, and how long it rests then.
type writerKind struct {
	name  string
	block int
	rest  time.Duration
}

var writerKinds = []writerKind{{"idle", 4 << 10, 2 * time.Millisecond}, {"saturating", 64 << 10, 0}}

// snapshots cuts a volume of 10 GiB while somebody writes to it, by CreateSnapshot and by the bare
// freeze, clone and thaw.
func (b *poolBench) snapshots(round int, volumed *driverWay) error {
	if !slices.Contains(b.options.rows, "snapshot") {
		return nil
	}
	own := volumed.of("ext4", map[string]string{"pool": "xfs", "snapshots": "reflink"})
	bare := bareWay{backend: "image-ext4", pool: filepath.Join(b.options.scratch, "xfs", "bare"), places: filepath.Join(b.options.scratch, "bare-places")}
	if err := os.MkdirAll(bare.pool, 0o755); err != nil {
		return err
	}
	ways := []cutWay{{"volumed", own, func(id string, n int) (func() error, error) { return cutByDriver(own, id, n) }},
		{"bare", bare, func(id string, _ int) (func() error, error) { return cutBare(bare, id) }}}
	for turn := range ways {
		if err := b.cutEach(ways[(turn+round)%len(ways)], round); err != nil {
			return err
		}
	}
	return nil
}

// cut makes a snapshot; what it returns deletes it.
type cutWay struct {
	name string
	way  volumeWay
	cut  func(id string, n int) (func() error, error)
}

func (b *poolBench) cutEach(w cutWay, round int) error {
	id, err := w.way.create(fmt.Sprintf("cut-%d", round), cutImageBytes)
	if err != nil {
		return err
	}
	if err := w.way.bring(id); err != nil {
		return err
	}
	if err := fill(filepath.Join(w.way.targetOf(id), "data"), int64(b.options.fillMiB)<<20); err != nil {
		return err
	}
	for _, kind := range writerKinds {
		values, err := b.cutBeside(w, id, kind)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", w.name, kind.name, err)
		}
		b.report.repeated(w.name, b.options.cuts, round, "cut "+kind.name, values)
	}
	if err := w.way.take(id); err != nil {
		return err
	}
	return w.way.remove(id)
}

func (b *poolBench) cutBeside(w cutWay, id string, kind writerKind) (map[string]float64, error) {
	writer, err := startWriter(filepath.Join(w.way.targetOf(id), "written"), kind)
	if err != nil {
		return nil, err
	}
	defer writer.stop()
	time.Sleep(2 * time.Second)
	alone, _ := writer.took(time.Time{}, time.Now())
	var took, stalls []time.Duration
	for n := range b.options.cuts {
		var remove func() error
		began := time.Now()
		err := unlessInterrupted(func() (err error) { remove, err = w.cut(id, n); return err })
		ended := time.Now()
		if err != nil {
			return nil, err
		}
		took = append(took, ended.Sub(began))
		time.Sleep(20 * time.Millisecond) // the writes that it held up have ended
		_, longest := writer.took(began, ended)
		stalls = append(stalls, longest)
		if err := remove(); err != nil {
			return nil, err
		}
	}
	return map[string]float64{
		"p50_ms": percentile(took, 0.5), "p99_ms": percentile(took, 0.99),
		"stall_p50_ms": percentile(stalls, 0.5), "stall_p99_ms": percentile(stalls, 0.99),
		"write_p50_ms": percentile(alone, 0.5), "write_p99_ms": percentile(alone, 0.99),
		"write_max_ms": percentile(alone, 1),
	}, nil
}

func cutByDriver(w *driverWay, id string, n int) (func() error, error) {
	ctx, stop := driverContext()
	defer stop()
	answer, err := w.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{SourceVolumeId: id, Name: fmt.Sprintf("%s-%d-%d", id, n, time.Now().UnixNano())})
	if err != nil {
		return nil, err
	}
	if !answer.Snapshot.ReadyToUse {
		return nil, fmt.Errorf("snapshot %s is not ready: it is a copy", answer.Snapshot.SnapshotId)
	}
	return func() error {
		ctx, stop := driverContext()
		defer stop()
		_, err := w.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: answer.Snapshot.SnapshotId})
		return err
	}, nil
}

// cutBare syncs, freezes, clones and thaws.
func cutBare(w bareWay, id string) (func() error, error) {
	mounted, err := os.Open(w.targetOf(id))
	if err != nil {
		return nil, err
	}
	defer mounted.Close()
	source, err := os.Open(w.content(id))
	if err != nil {
		return nil, err
	}
	defer source.Close()
	copy, err := os.OpenFile(w.content(id)+".cut", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer copy.Close()
	const freeze, thaw = 0xc0045877, 0xc0045878 // FIFREEZE, FITHAW
	if err := unix.Syncfs(int(mounted.Fd())); err != nil {
		return nil, err
	}
	if err := unix.IoctlSetInt(int(mounted.Fd()), freeze, 0); err != nil {
		return nil, err
	}
	cloned := unix.IoctlFileClone(int(copy.Fd()), int(source.Fd()))
	if err := unix.IoctlSetInt(int(mounted.Fd()), thaw, 0); err != nil {
		return nil, err
	}
	return func() error { return os.Remove(copy.Name()) }, cloned
}

func fill(name string, bytes int64) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	block := make([]byte, 1<<20)
	random := rand.New(rand.NewSource(1))
	random.Read(block)
	for at := int64(0); at < bytes; at += int64(len(block)) {
		if _, err := file.WriteAt(block, at); err != nil {
			return err
		}
	}
	return file.Sync()
}

// writer writes blocks to random places of a file, and notes how long each write(2) took. It syncs
// nothing: what it waits for is a frozen filesystem, and memory that has to be written first.
type writer struct {
	file  *os.File
	ended chan struct{}
	group sync.WaitGroup

	mu     sync.Mutex
	writes []written
	err    error
}

type written struct {
	began time.Time
	took  time.Duration
}

func startWriter(name string, kind writerKind) (*writer, error) {
	if err := fill(name, writtenBytes); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	w := &writer{file: file, ended: make(chan struct{})}
	w.group.Go(func() { w.write(kind) })
	return w, nil
}

func (w *writer) write(kind writerKind) {
	block := make([]byte, kind.block)
	for {
		select {
		case <-w.ended:
			return
		case <-time.After(kind.rest):
		}
		began := time.Now()
		_, err := w.file.WriteAt(block, rand.Int63n(writtenBytes/int64(kind.block))*int64(kind.block))
		one := written{began, time.Since(began)}
		w.mu.Lock()
		w.writes, w.err = append(w.writes, one), err
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// took has the writes that were under way in that time, and the longest of them.
func (w *writer) took(from, until time.Time) (all []time.Duration, longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range slices.Backward(w.writes) {
		if one.began.Add(one.took).Before(from) {
			break
		}
		if one.began.Before(until) {
			all, longest = append(all, one.took), max(longest, one.took)
		}
	}
	return all, longest
}

func (w *writer) stop() {
	close(w.ended)
	w.group.Wait()
	w.file.Close()
	if w.err != nil {
		fmt.Fprintln(os.Stderr, "beside: the writer:", w.err)
	}
}
