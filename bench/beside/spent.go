package main

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// spending is what a program uses while a row is measured: processor time of all its processes, their
// memory at its highest, and, apart, what the driver uses itself.
type spending struct {
	group      *cgroup
	began      time.Time
	cpuBefore  time.Duration
	selfBefore time.Duration
	busyBefore time.Duration
	stop       chan struct{}
	sampled    chan memoryPeak
}

type memoryPeak struct {
	bytes     int64
	processes int
}

const betweenSamples = 500 * time.Millisecond

func (s *session) startSpending() (*spending, error) {
	group := s.program.common().group
	cpu, err := group.cpu()
	p := &spending{group: group, began: time.Now(), cpuBefore: cpu, selfBefore: ownCPU(), busyBefore: machineCPU(),
		stop: make(chan struct{}), sampled: make(chan memoryPeak, 1)}
	go func() { p.sampled <- samplePeak(group, p.stop) }()
	return p, err
}

func samplePeak(group *cgroup, stop <-chan struct{}) memoryPeak {
	var peak memoryPeak
	for {
		bytes, processes := group.pss()
		peak.bytes, peak.processes = max(peak.bytes, bytes), max(peak.processes, processes)
		select {
		case <-stop:
			return peak
		case <-time.After(betweenSamples):
		}
	}
}

func (p *spending) end() (map[string]float64, error) {
	cpu, err := p.group.cpu()
	self, busy, wall := ownCPU(), machineCPU(), time.Since(p.began)
	bytes, processes := p.group.pss()
	close(p.stop)
	peak := <-p.sampled
	return map[string]float64{
		"cpu_ms":        milliseconds(cpu - p.cpuBefore),
		"wall_ms":       milliseconds(wall),
		"driver_cpu_ms": milliseconds(self - p.selfBefore),
		"others_cpu_ms": milliseconds(max(0, (busy-p.busyBefore)-(cpu-p.cpuBefore)-(self-p.selfBefore))),
		"peak_pss_mib":  float64(max(peak.bytes, bytes)) / (1 << 20),
		"processes":     float64(max(peak.processes, processes)),
	}, err
}

func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // getrusage(2) cannot fail with words that are right
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// machineCPU is what everything on the machine has used. Less the program and the driver, that is how
// much a measurement was disturbed, with what the kernel's own threads did for it.
func machineCPU() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	var user, nice, system, idle, wait, interrupt, softInterrupt int64
	fmt.Sscanf(string(text), "cpu %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &interrupt, &softInterrupt)
	const ticksPerSecond = 100 // USER_HZ, on every architecture
	return time.Duration(user+nice+system+interrupt+softInterrupt) * time.Second / ticksPerSecond
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// percentile in milliseconds; the nearest rank.
func percentile(values []time.Duration, part float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return milliseconds(sorted[min(len(sorted)-1, int(part*float64(len(sorted))))])
}
