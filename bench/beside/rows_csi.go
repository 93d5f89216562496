package main

import (
	"fmt"
	"math/rand"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// csiSetting is how the CSI driver behaves while a burst comes and goes.
type csiSetting struct {
	delay  time.Duration // of each RPC
	atOnce int           // RPCs that it works on at a time; 0: any number
}

func parseCSISetting(word string) (csiSetting, error) {
	delay, atOnce, limited := strings.Cut(word, ":")
	var setting csiSetting
	var err error
	if setting.delay, err = time.ParseDuration(delay); err != nil {
		return setting, err
	}
	if limited {
		if setting.atOnce, err = strconv.Atoi(atOnce); err != nil || setting.atOnce < 1 {
			return setting, fmt.Errorf("%q is no number of RPCs", atOnce)
		}
	}
	return setting, nil
}

func (c csiSetting) String() string {
	if c.atOnce == 0 {
		return fmt.Sprintf("csi %v", c.delay)
	}
	return fmt.Sprintf("csi %v:%d", c.delay, c.atOnce)
}

// Pods with a volume of a CSI driver each come and go, for each behaviour of the driver. When a volume was
// published and unstaged is seen by the driver.
func (s *session) csi() error {
	volumes := filepath.Join(s.options.scratch, "csi-volumes")
	if err := makeCSIVolumes(volumes, s.pods); err != nil {
		return err
	}
	driver := &csiDriver{volumes: volumes}
	registrar, err := registerCSIDriver(s.root(), driver)
	if err != nil {
		return err
	}
	defer registrar.stop()
	if err := s.csiOneByOne(driver); err != nil {
		return err
	}
	for i, setting := range s.options.csi {
		driver.behave(setting.delay, setting.atOnce)
		uids := uidsOf(fmt.Sprintf("%s%d", csiPodPrefix, i), s.pods)
		values, err := s.csiComes(driver, uids)
		if err == nil {
			err = s.csiGoes(driver, uids, values)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", setting, err)
		}
		s.tell(s.csiRow(setting), values)
	}
	return nil
}

func (s *session) csiRow(setting csiSetting) string {
	row := setting.String()
	if s.options.csiCalls != defaultCSICalls {
		row += fmt.Sprintf(", %d calls", s.options.csiCalls)
	}
	return row
}

// csiOneByOne is the warm-up of what follows, too. The pause keeps the pods from falling into step with loops of
// 100 ms.
func (s *session) csiOneByOne(driver *csiDriver) error {
	uids := uidsOf(csiPodPrefix+"single", min(s.pods, s.options.singles))
	driver.behave(0, 0)
	var took []time.Duration
	for i := range uids {
		time.Sleep(time.Duration(rand.Int63n(int64(100 * time.Millisecond))))
		began, err := s.hand(uids[i : i+1])
		if err != nil {
			return err
		}
		moments, err := driver.waitFor("NodePublishVolume", uids[:i+1])
		if err != nil {
			return err
		}
		took = append(took, moments[i].Sub(began))
	}
	s.tell("csi-single", map[string]float64{"p50_ms": percentile(took, 0.5), "p99_ms": percentile(took, 0.99)})
	if err := s.program.takeAway(uids); err != nil {
		return err
	}
	if _, err := driver.waitFor("NodeUnstageVolume", uids); err != nil {
		return err
	}
	_, err := waitGone(s.root(), uids, []string{""})
	return err
}

// hand gives pods to the program; the moment before.
func (s *session) hand(uids []string) (time.Time, error) {
	hand, err := s.program.prepare(uids)
	if err != nil {
		return time.Time{}, err
	}
	began := time.Now()
	return began, hand()
}

func (s *session) csiComes(driver *csiDriver, uids []string) (map[string]float64, error) {
	spent, err := s.startSpending()
	if err != nil {
		return nil, err
	}
	began, err := s.hand(uids)
	if err != nil {
		return nil, err
	}
	moments, err := driver.waitFor("NodePublishVolume", uids)
	if err != nil {
		return nil, err
	}
	values, err := spent.end()
	if err != nil {
		return nil, err
	}
	published := since(began, moments)
	all := published[len(published)-1]
	values["p50_ms"], values["p99_ms"], values["all_ms"] = percentile(published, 0.5), percentile(published, 0.99), milliseconds(all)
	values["per_second"] = float64(len(uids)) / all.Seconds()
	values["cpu_per_volume_ms"] = values["cpu_ms"] / float64(len(uids))
	said, err := s.untilSaysReady(began, uids)
	if err != nil {
		return nil, err
	}
	values["said_ms"] = milliseconds(said)
	if err := countCSI(driver, values, "", uids, "NodeStageVolume", "NodePublishVolume"); err != nil {
		return nil, err
	}
	return values, checkCSIPods(s.root(), uids)
}

func (s *session) csiGoes(driver *csiDriver, uids []string, values map[string]float64) error {
	driver.forget()
	spent, err := s.startSpending()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.program.takeAway(uids); err != nil {
		return err
	}
	moments, err := driver.waitFor("NodeUnstageVolume", uids)
	if err != nil {
		return err
	}
	directories, err := waitGone(s.root(), uids, []string{""})
	if err != nil {
		return err
	}
	used, err := spent.end()
	if err != nil {
		return err
	}
	gone := since(began, moments)
	all := gone[len(gone)-1]
	values["gone_p50_ms"], values["gone_p99_ms"], values["gone_all_ms"] = percentile(gone, 0.5), percentile(gone, 0.99), milliseconds(all)
	values["gone_per_second"] = float64(len(uids)) / all.Seconds()
	values["gone_cpu_per_volume_ms"] = used["cpu_ms"] / float64(len(uids))
	values["gone_directories_ms"] = milliseconds(directories.Sub(began))
	values["gone_others_cpu_ms"] = used["others_cpu_ms"]
	if err := countCSI(driver, values, "gone_", uids, "NodeUnpublishVolume", "NodeUnstageVolume"); err != nil {
		return err
	}
	for _, place := range []string{"pods", "plugins"} {
		if left, err := mountIDs(filepath.Join(s.root(), place)); err != nil || len(left) > 0 {
			return fmt.Errorf("%d mounts are left in %s (%v)", len(left), place, err)
		}
	}
	return nil
}

// countCSI holds the program to one of each of these RPCs for a volume; what else it asked is told.
func countCSI(driver *csiDriver, values map[string]float64, prefix string, uids []string, methods ...string) error {
	calls, most := driver.seen()
	counts := map[string]int{}
	for _, call := range calls {
		counts[call.method]++
	}
	for _, method := range methods {
		if counts[method] != len(uids) {
			return fmt.Errorf("%d times %s for %d volumes", counts[method], method, len(uids))
		}
	}
	values[prefix+"rpcs_per_volume"] = float64(len(calls)) / float64(len(uids))
	values[prefix+"most_at_once"] = float64(most)
	return nil
}
