package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Row many: so many volumes that are all there at the same time, as a node has them, and not one after
// another. What a call costs for the last tenth of them beside the first one tells what grows with them.

// An xfs is not smaller than 300 MiB.
const manyVolumeBytes = 512 << 20

// promised is what the volumes of row many have together; the other rows have few.
func (o *poolOptions) promised() int64 {
	if !slices.Contains(o.rows, "many") {
		return 0
	}
	return int64(o.many) * manyVolumeBytes
}

// manySteps are what is done to all volumes before the next is done to any.
var manySteps = []struct {
	name string
	work func(way volumeWay, name string, id *string) error
}{
	{"create", func(way volumeWay, name string, id *string) (err error) {
		*id, err = way.create(name, manyVolumeBytes)
		return err
	}},
	{"bring", func(way volumeWay, _ string, id *string) error { return way.bring(*id) }},
	{"take", func(way volumeWay, _ string, id *string) error { return way.take(*id) }},
	{"remove", func(way volumeWay, _ string, id *string) error { return way.remove(*id) }},
}

func (b *poolBench) many(backend string, round int, ways []namedWay) error {
	if !slices.Contains(b.options.rows, "many") {
		return nil
	}
	for turn := range ways {
		way := ways[(turn+round)%len(ways)]
		if err := makeBarePool(way.way); err != nil {
			return err
		}
		values, err := b.manyOf(way.way, fmt.Sprintf("%s-many-%d", backend, round))
		if err != nil {
			return fmt.Errorf("%s, many: %w", way.name, err)
		}
		b.report.repeated(way.name, b.options.many, round, "many "+backend, values)
	}
	return nil
}

func (b *poolBench) manyOf(way volumeWay, name string) (map[string]float64, error) {
	values := map[string]float64{}
	ids := make([]string, b.options.many)
	for _, step := range manySteps {
		before, err := way.cpu()
		if err != nil {
			return nil, err
		}
		began := time.Now()
		took, err := b.toAll(len(ids), func(i int) error {
			return step.work(way, fmt.Sprintf("%s-%d", name, i), &ids[i])
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		wall := time.Since(began)
		after, err := way.cpu()
		if err != nil {
			return nil, err
		}
		tenth := max(1, len(took)/10)
		values[step.name+"_per_second"] = float64(len(took)) / wall.Seconds()
		values[step.name+"_first_ms"] = percentile(took[:tenth], 0.5)
		values[step.name+"_last_ms"] = percentile(took[len(took)-tenth:], 0.5)
		values[step.name+"_cpu_ms"] = milliseconds(after-before) / float64(len(took))
		if driver, ok := way.(*driverWay); ok && step.name == "bring" {
			if err := driver.atRest(values); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// toAll does the work for each of them, so many at a time as there are callers, and has how long each
// took in their order.
func (b *poolBench) toAll(count int, work func(i int) error) ([]time.Duration, error) {
	took := make([]time.Duration, count)
	problems := make([]error, b.options.callers)
	var next atomic.Int64
	var group sync.WaitGroup
	for caller := range b.options.callers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				begun := time.Now()
				if problems[caller] = unlessInterrupted(func() error { return work(i) }); problems[caller] != nil {
					return
				}
				took[i] = time.Since(begun)
			}
		})
	}
	group.Wait()
	return took, errors.Join(problems...)
}

// atRest measures a driver whose volumes are all staged and published: what it takes of memory, and to
// list them.
func (w *driverWay) atRest(values map[string]float64) error {
	bytes, _ := w.processes[0].group.pss()
	values["pss_mib"] = float64(bytes) / (1 << 20)
	began := time.Now()
	listed := 0
	for token := ""; ; {
		ctx, stop := driverContext()
		answer, err := w.controller.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: 100, StartingToken: token})
		stop()
		if err != nil {
			return err
		}
		listed += len(answer.Entries)
		if token = answer.NextToken; token == "" {
			break
		}
	}
	values["list_us_each"] = milliseconds(time.Since(began)) * 1000 / float64(max(1, listed))
	return nil
}
