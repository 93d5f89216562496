package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// bench runs every row for every number of pods, the two programs taking turns.
type bench struct {
	options options
	report  *report

	mu      sync.Mutex
	current program // whose turn it is
}

func newBench(o options) (*bench, error) {
	o.load.hostPath = filepath.Join(o.scratch, "host")
	report, err := newReport(o)
	return &bench{options: o, report: report}, err
}

func (b *bench) run() error {
	if err := b.report.machine(b.options); err != nil {
		return err
	}
	measure := func() error {
		for _, count := range b.options.pods {
			for round := range b.options.rounds {
				if err := b.floor(count, round); err != nil {
					return err
				}
				for turn := range b.options.only {
					name := b.options.only[(turn+round)%len(b.options.only)]
					if err := b.turn(name, count, round); err != nil {
						return fmt.Errorf("%s, %d pods: %w", name, count, err)
					}
				}
			}
		}
		return nil
	}
	// The driver keeps off the programs' processors where there are others.
	return onProcessors(b.options.cores, false, measure)
}

// floor is what a bare loop takes for the same work, on the same disk.
func (b *bench) floor(count, round int) error {
	if b.options.floor == "" {
		return nil
	}
	command := exec.Command(b.options.floor, "--json", "--pods", strconv.Itoa(count), "--scratch", b.options.scratch)
	command.Stderr = os.Stderr
	var text []byte
	err := onProcessors(b.options.cores, true, func() (err error) {
		text, err = command.Output()
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", b.options.floor, err)
	}
	var values map[string]float64
	if err := json.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("%s: %w", b.options.floor, err)
	}
	for _, what := range []string{"setup", "teardown"} {
		values[what+"_cpu_per_pod_ms"] = values[what+"_cpu_ms"] / float64(count)
	}
	b.report.row("floor", count, round, "floor", values)
	return nil
}

// turn leaves the program's directory, with its log, only after an error. A program that is too slow for
// a row is no error: that is told as the row's result, and its turn is over.
func (b *bench) turn(name string, count, round int) error {
	p, err := b.begin(name)
	if err != nil {
		return err
	}
	s := &session{program: p, options: b.options, report: b.report, pods: count, round: round}
	if s.wants("csi") {
		s.options.load.csiVolumes = count
	}
	err = s.run()
	var late *lateError
	if errors.As(err, &late) {
		b.report.late(name, count, round, err, late)
	} else if err != nil {
		return fmt.Errorf("%w; its log is %s/log", err, p.common().scratch)
	}
	if err := p.common().clean(); err != nil {
		return err
	}
	b.end()
	return nil
}

func (b *bench) begin(name string) (program, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	if name == "volumed" {
		b.current, err = newVolumed(b.options)
	} else {
		b.current, err = newPeer(b.options)
	}
	return b.current, err
}

// end leaves no process and no cgroup. What is mounted ends with the mount namespace.
func (b *bench) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current == nil {
		return
	}
	common := b.current.common()
	group := common.group
	b.current = nil
	err := errors.Join(common.kill(), group.kill())
	if err == nil {
		err = group.remove()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "beside: the cgroup %s is left: %v\n", group.path, err)
	}
}

// session is one program's turn: a fresh root, and the rows that were asked for.
type session struct {
	program program
	options options
	report  *report
	pods    int
	round   int
	value   string // of the ConfigMap, by now
	uids    []string
}

func (s *session) tell(row string, values map[string]float64) {
	s.report.row(s.program.common().name, s.pods, s.round, row, values)
}

func (s *session) wants(row string) bool { return slices.Contains(s.options.rows, row) }

func (s *session) root() string { return s.program.common().root() }

func (s *session) run() error {
	common := s.program.common()
	if err := common.clean(); err != nil {
		return err
	}
	s.value = "one"
	if err := s.program.putObjects(s.options.load.objects(s.value)); err != nil {
		return err
	}
	if err := s.program.start(); err != nil {
		return err
	}
	if err := s.warmUp(); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	for _, row := range rows {
		if !s.wants(row.name) && !(row.needed != nil && row.needed(s)) {
			continue
		}
		if err := row.measure(s); err != nil {
			return fmt.Errorf("row %s: %w", row.name, err)
		}
	}
	return nil
}

// warmUp lets the program load what it loads once.
func (s *session) warmUp() error {
	uids := uidsOf("warm", 5)
	if _, err := s.give(uids, 5*time.Millisecond); err != nil {
		return err
	}
	if err := s.remove(uids); err != nil {
		return err
	}
	time.Sleep(time.Second)
	return nil
}

// give hands pods over and waits until they are ready; when each of them was, since it began.
func (s *session) give(uids []string, look time.Duration) ([]time.Duration, error) {
	hand, err := s.program.prepare(uids)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := hand(); err != nil {
		return nil, err
	}
	ready, err := waitReady(s.root(), uids, look)
	return since(began, ready), err
}

func (s *session) remove(uids []string) error {
	if err := s.program.takeAway(uids); err != nil {
		return err
	}
	_, err := waitGone(s.root(), uids, []string{""})
	return err
}

func since(began time.Time, moments []time.Time) []time.Duration {
	took := make([]time.Duration, len(moments))
	for i, moment := range moments {
		took[i] = moment.Sub(began)
	}
	slices.Sort(took)
	return took
}

// untilSaysReady is how long it took until the program itself says that all its pods are ready.
func (s *session) untilSaysReady(began time.Time, uids []string) (time.Duration, error) {
	ctx, stop := context.WithTimeout(context.Background(), giveUpAfter)
	defer stop()
	err := s.program.waitAllReady(ctx, uids)
	if ctx.Err() != nil {
		return 0, &lateError{len(uids), "it does not say that all pods are ready"}
	}
	return time.Since(began), err
}
