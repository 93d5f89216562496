package main

import (
	"fmt"
	"math/rand"
	"path/filepath"
	"time"
)

// A row is measured in a session, in this order; a row that another one stands on runs for it.
type row struct {
	name    string
	measure func(*session) error
	needed  func(*session) bool
}

var rows = []row{
	{"sequential", (*session).sequential, nil},
	{"burst", (*session).burst, func(s *session) bool {
		return s.wants("update") || s.wants("update-in-turn") || s.wants("restart") || s.wants("idle") || s.wants("delete")
	}},
	{"update", (*session).update, nil},
	{"update-in-turn", (*session).updateInTurn, nil},
	{"idle", (*session).idle, nil},
	{"restart", (*session).restart, nil},
	{"delete", (*session).delete, func(s *session) bool {
		return len(s.uids) > 0 && (s.wants("beside") || s.wants("queries"))
	}},
	{"beside", (*session).beside, nil},
	{"queries", (*session).askMeanwhile, nil},
	{"csi", (*session).csi, nil},
}

var (
	allRows     = []string{"sequential", "burst", "update", "update-in-turn", "idle", "restart", "delete", "beside", "queries", "csi"}
	defaultRows = []string{"sequential", "burst", "update", "restart", "delete", "beside", "queries"}
)

// One after another. The pause keeps the pods from falling into step with loops of 100 ms.
func (s *session) sequential() error {
	uids := uidsOf("single", s.options.singles)
	spent, err := s.startSpending()
	if err != nil {
		return err
	}
	var took []time.Duration
	for i := range uids {
		time.Sleep(time.Duration(rand.Int63n(int64(100 * time.Millisecond))))
		one, err := s.single(uids[i:i+1], 250*time.Microsecond)
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	values, err := spent.end()
	if err != nil {
		return err
	}
	values["p50_ms"], values["p99_ms"] = percentile(took, 0.5), percentile(took, 0.99)
	values["cpu_per_pod_ms"] = values["cpu_ms"] / float64(len(uids))
	s.tell("sequential", values)
	if err := checkPods(s.root(), s.options.load, uids, s.value); err != nil {
		return err
	}
	return s.remove(uids)
}

// single is timed by the clock and not by the files' times, which are as coarse as the kernel's tick.
func (s *session) single(uid []string, look time.Duration) (time.Duration, error) {
	hand, err := s.program.prepare(uid)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := hand(); err != nil {
		return 0, err
	}
	_, err = waitReady(s.root(), uid, look)
	return time.Since(began), err
}

func (s *session) burst() error {
	uids := uidsOf("burst", s.pods)
	hand, err := s.program.prepare(uids)
	if err != nil {
		return err
	}
	spent, err := s.startSpending()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := hand(); err != nil {
		return err
	}
	taken := time.Since(began)
	moments, err := waitReady(s.root(), uids, 20*time.Millisecond)
	if err != nil {
		return err
	}
	values, err := spent.end()
	if err != nil {
		return err
	}
	s.uids = uids
	ready := since(began, moments)
	values["taken_ms"] = milliseconds(taken)
	values["first_ms"], values["p50_ms"] = milliseconds(ready[0]), percentile(ready, 0.5)
	values["all_ms"] = milliseconds(ready[len(ready)-1])
	values["cpu_per_pod_ms"] = values["cpu_ms"] / float64(s.pods)
	if _, err := s.untilSaysReady(began, s.uids); err != nil {
		return err
	}
	s.tell("burst", values)
	return checkPods(s.root(), s.options.load, uids, s.value)
}

// A ConfigMap changes. Kubelet looks at it when the pod is synced the next time, each 60 to 90 s: that
// it syncs all pods now leaves its waiting out.
func (s *session) update() error { return s.updateBy("update", s.program.syncNow) }

func (s *session) updateInTurn() error {
	return s.updateBy("update-in-turn", func() error { return nil })
}

func (s *session) updateBy(name string, hasten func() error) error {
	s.value = fmt.Sprintf("changed at %d", time.Now().UnixMilli())
	spent, err := s.startSpending()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.program.putObjects(s.options.load.objects(s.value)); err != nil {
		return err
	}
	if err := hasten(); err != nil {
		return err
	}
	moments, err := waitUpdated(s.root(), s.uids, began.Add(-tick))
	if err != nil {
		return err
	}
	values, err := spent.end()
	if err != nil {
		return err
	}
	updated := since(began, moments)
	values["first_ms"], values["last_ms"] = milliseconds(updated[0]), milliseconds(updated[len(updated)-1])
	s.tell(name, values)
	return checkPods(s.root(), s.options.load, s.uids, s.value)
}

// A file's time may be a tick of the kernel before the clock's.
const tick = 10 * time.Millisecond

func (s *session) idle() error {
	time.Sleep(5 * time.Second) // what the burst left to do
	spent, err := s.startSpending()
	if err != nil {
		return err
	}
	time.Sleep(time.Minute)
	values, err := spent.end()
	if err != nil {
		return err
	}
	s.tell("idle", values)
	return nil
}

// kill -9, and started again: until it says that all pods are ready, and no mount is another one.
func (s *session) restart() error {
	common := s.program.common()
	before, err := mountIDs(filepath.Join(s.root(), "pods"))
	if err != nil {
		return err
	}
	if err := common.kill(); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond) // workers end as well
	spent, err := s.startSpending()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.program.start(); err != nil {
		return err
	}
	answers := time.Since(began)
	all, err := s.untilSaysReady(began, s.uids)
	if err != nil {
		return err
	}
	values, err := spent.end()
	if err != nil {
		return err
	}
	after, err := mountIDs(filepath.Join(s.root(), "pods"))
	if err != nil {
		return err
	}
	values["answers_ms"], values["all_ms"] = milliseconds(answers), milliseconds(all)
	for path, id := range before {
		if after[path] != id {
			values["mounts_replaced"]++
		}
	}
	s.tell("restart", values)
	return checkPods(s.root(), s.options.load, s.uids, s.value)
}

func (s *session) delete() error {
	spent, err := s.startSpending()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.program.takeAway(s.uids); err != nil {
		return err
	}
	volumes, err := waitGone(s.root(), s.uids, volumeDirectories)
	if err != nil {
		return err
	}
	directories, err := waitGone(s.root(), s.uids, []string{""})
	if err != nil {
		return err
	}
	values, err := spent.end()
	if err != nil {
		return err
	}
	if left, err := mountIDs(filepath.Join(s.root(), "pods")); err != nil || len(left) > 0 {
		return fmt.Errorf("%d mounts are left (%v)", len(left), err)
	}
	values["volumes_ms"] = milliseconds(volumes.Sub(began))
	values["directories_ms"] = milliseconds(directories.Sub(began))
	values["cpu_per_pod_ms"] = values["cpu_ms"] / float64(s.pods)
	s.uids = nil
	if s.wants("delete") {
		s.tell("delete", values)
	}
	return nil
}
