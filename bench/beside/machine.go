package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// describeMachine says what the figures were measured on.
func describeMachine(scratch string) (map[string]string, map[string]float64, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, nil, err
	}
	synced, err := fdatasyncTimes(scratch, 200)
	if err != nil {
		return nil, nil, err
	}
	facts := map[string]string{
		"kernel":     "Linux " + unix.ByteSliceToString(name.Release[:]),
		"cpu":        fmt.Sprintf("%d x %s", runtime.NumCPU(), processorModel()),
		"filesystem": filesystemOf(scratch),
	}
	return facts, map[string]float64{
		"fdatasync_p50_ms": percentile(synced, 0.5), "fdatasync_p99_ms": percentile(synced, 0.99)}, nil
}

func processorModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for _, line := range strings.Split(string(text), "\n") {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor without a name"
}

// filesystemOf takes the longest mount point that is above the path.
func filesystemOf(path string) string {
	table, _ := os.ReadFile("/proc/self/mounts")
	longest, found := "", "unknown filesystem"
	for _, line := range strings.Split(string(table), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		relative, err := filepath.Rel(fields[1], path)
		if err == nil && !strings.HasPrefix(relative, "..") && len(fields[1]) >= len(longest) {
			longest, found = fields[1], fields[2]
		}
	}
	return found
}

// fdatasyncTimes appends 4 KiB at a time and syncs each: what a durable record costs at least.
func fdatasyncTimes(directory string, count int) ([]time.Duration, error) {
	file, err := os.CreateTemp(directory, "fdatasync")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	block := make([]byte, 4096)
	took := make([]time.Duration, 0, count)
	for range count {
		began := time.Now()
		if _, err := file.Write(block); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

func inWords(values map[string]float64) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words = append(words, fmt.Sprintf("%s=%.4g", name, values[name]))
	}
	return strings.Join(words, " ")
}
