package main

import (
	"fmt"
	"sync"
	"time"
)

// besideBurst runs a burst and calls `meanwhile` until it is through.
func (s *session) besideBurst(prefix string, meanwhile func(done <-chan struct{}) error) error {
	uids := uidsOf(prefix, s.pods)
	hand, err := s.program.prepare(uids)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	var besideErr error
	var group sync.WaitGroup
	if err := hand(); err != nil {
		return err
	}
	group.Go(func() { besideErr = meanwhile(done) })
	_, err = waitReady(s.root(), uids, 20*time.Millisecond)
	close(done)
	group.Wait()
	if err == nil {
		err = besideErr
	}
	if err == nil {
		err = s.remove(uids)
	}
	return err
}

const (
	betweenSingles = 100 * time.Millisecond
	mostSingles    = 40
)

// One more pod while a burst is under way, again and again: how long each of these takes.
func (s *session) beside() error {
	var mu sync.Mutex
	var took []time.Duration
	var problem error
	uids := uidsOf("beside", mostSingles)
	given := 0
	err := s.besideBurst("crowd", func(done <-chan struct{}) error {
		var group sync.WaitGroup
		defer group.Wait()
		for ; given < mostSingles; given++ {
			uid := uids[given : given+1]
			group.Go(func() {
				one, err := s.single(uid, 2*time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				took = append(took, one)
				if err != nil {
					problem = err
				}
			})
			select {
			case <-done:
				given++
				return nil
			case <-time.After(betweenSingles):
			}
		}
		return nil
	})
	if err == nil {
		err = problem
	}
	if err != nil {
		return err
	}
	s.tell("beside", map[string]float64{"p50_ms": percentile(took, 0.5), "p99_ms": percentile(took, 0.99),
		"singles": float64(len(took))})
	return s.remove(uids[:given])
}

// What an operator and a scraper ask while a burst is under way, each ten times a second at most.
func (s *session) askMeanwhile() error {
	values := map[string]float64{}
	var mu sync.Mutex
	err := s.besideBurst("asked", func(done <-chan struct{}) error {
		var group sync.WaitGroup
		problems := make(chan error, len(s.program.queries()))
		for name, ask := range s.program.queries() {
			group.Go(func() {
				took, err := askUntil(done, ask)
				if err != nil {
					problems <- fmt.Errorf("%s: %w", name, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				values[name+"_p50_ms"], values[name+"_max_ms"] = percentile(took, 0.5), percentile(took, 1)
			})
		}
		group.Wait()
		close(problems)
		return <-problems
	})
	if err != nil {
		return err
	}
	s.tell("queries", values)
	return nil
}

func askUntil(done <-chan struct{}, ask func() error) ([]time.Duration, error) {
	var took []time.Duration
	for {
		began := time.Now()
		if err := ask(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
		select {
		case <-done:
			return took, nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}
