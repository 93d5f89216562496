package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A look at the files may take a twentieth of the driver's time, so that it takes nothing from the
// programs; a burst is told exactly all the same, by the times that the files have.
const lookShare = 20

const giveUpAfter = 5 * time.Minute

// lateError is of a program that has not done what it was waited for.
type lateError struct {
	missing int
	what    string
}

func (e *lateError) Error() string { return fmt.Sprintf("%s after %v", e.what, giveUpAfter) }

// waitReady waits until all volumes of all these pods are set up, and returns when each pod's were:
// by the change times of its files.
func waitReady(root string, uids []string, shortest time.Duration) ([]time.Time, error) {
	return waitChanged(root, uids, lastOfVolumes, time.Time{}, shortest)
}

// waitUpdated waits until the ConfigMap's volume was written anew after `since`.
func waitUpdated(root string, uids []string, since time.Time) ([]time.Time, error) {
	return waitChanged(root, uids, lastOfVolumes[:1], since, 10*time.Millisecond)
}

func waitChanged(root string, uids, names []string, since time.Time, shortest time.Duration) ([]time.Time, error) {
	when := make([]time.Time, len(uids))
	seen := make([]int, len(uids)) // how many of a pod's names are there already
	pending := make([]int, len(uids))
	for i := range uids {
		pending[i] = i
	}
	for start := time.Now(); ; {
		began := time.Now()
		left := pending[:0]
		for _, i := range pending {
			for seen[i] < len(names) {
				changed, ok := changeTime(filepath.Join(root, "pods", uids[i], names[seen[i]]))
				if !ok || changed.Before(since) {
					break
				}
				seen[i]++
				if changed.After(when[i]) {
					when[i] = changed
				}
			}
			if seen[i] < len(names) {
				left = append(left, i)
			}
		}
		if pending = left; len(pending) == 0 {
			return when, nil
		}
		if time.Since(start) > giveUpAfter {
			return nil, &lateError{len(pending), fmt.Sprintf("%d of %d pods are not ready, the first: %s lacks %s",
				len(pending), len(uids), uids[pending[0]], names[seen[pending[0]]])}
		}
		time.Sleep(max(shortest, lookShare*time.Since(began)))
	}
}

func changeTime(path string) (time.Time, bool) {
	var stat syscall.Stat_t
	if syscall.Lstat(path, &stat) != nil {
		return time.Time{}, false
	}
	return time.Unix(stat.Ctim.Sec, stat.Ctim.Nsec), true
}

// waitGone waits until none of `names` is there in any pod's directory ("" is that directory itself).
func waitGone(root string, uids, names []string) (time.Time, error) {
	paths := make([]string, 0, len(uids)*len(names))
	for _, uid := range uids {
		for _, name := range names {
			paths = append(paths, filepath.Join(root, "pods", uid, name))
		}
	}
	for start := time.Now(); ; {
		began := time.Now()
		left := paths[:0]
		for _, path := range paths {
			if _, there := changeTime(path); there {
				left = append(left, path)
			}
		}
		if paths = left; len(paths) == 0 {
			return began, nil
		}
		if time.Since(start) > giveUpAfter {
			return began, &lateError{len(paths), fmt.Sprintf("%d directories are not gone, the first: %s", len(paths), paths[0])}
		}
		time.Sleep(max(2*time.Millisecond, lookShare*time.Since(began)))
	}
}

// mountIDs has the id of each mount below `directory`; one that was made anew has another id.
func mountIDs(directory string) (map[string]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && strings.HasPrefix(fields[4], directory+"/") {
			ids[fields[4]] = fields[0]
		}
	}
	return ids, lines.Err()
}

// checkPods says what of the pods is not as it should be: mounts, and what their files hold.
func checkPods(root string, l load, uids []string, value string) error {
	ids, err := mountIDs(filepath.Join(root, "pods"))
	if err != nil {
		return err
	}
	for _, uid := range uids {
		directory := filepath.Join(root, "pods", uid)
		for _, name := range l.mountedVolumes() {
			if ids[filepath.Join(directory, name)] == "" {
				return fmt.Errorf("%s is no mount point", filepath.Join(directory, name))
			}
		}
		for name, want := range map[string]string{
			"kubernetes.io~configmap/c/a": value, "kubernetes.io~secret/s/user": "somebody",
			"kubernetes.io~projected/p/namespace": "default", "kubernetes.io~projected/p/token": "",
		} {
			content, err := os.ReadFile(filepath.Join(directory, "volumes", name))
			if err != nil {
				return err
			}
			if want != "" && string(content) != want || len(content) == 0 {
				return fmt.Errorf("%s: %s holds %q and not %q", uid, name, content, want)
			}
		}
	}
	if want := len(uids) * len(l.mountedVolumes()); len(ids) < want {
		return fmt.Errorf("%d mounts, and not %d", len(ids), want)
	}
	return nil
}
