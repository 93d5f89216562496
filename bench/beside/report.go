package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// record is a line of the results. A run begins with one of the row "machine".
type record struct {
	Time     string             `json:"time"`
	Row      string             `json:"row"`
	Program  string             `json:"program,omitempty"`
	Pods     int                `json:"pods,omitempty"`
	Round    int                `json:"round"`
	Cores    int                `json:"cores"`
	FSGroup  bool               `json:"fsgroup"`
	EmptyDir string             `json:"emptydir"`
	HandOver string             `json:"hand_over"`
	APIQPS   int                `json:"api_qps,omitempty"`
	Values   map[string]float64 `json:"values"`
	Facts    map[string]string  `json:"facts,omitempty"`
}

type report struct {
	file    *os.File
	options options
}

func newReport(o options) (*report, error) {
	file, err := os.OpenFile(o.results, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &report{file, o}, err
}

func (r *report) row(program string, pods, round int, row string, values map[string]float64) {
	r.write(record{Row: row, Program: program, Pods: pods, Round: round, Values: values})
	fmt.Printf("%-8s %6d pods  round %d  %-14s %s\n", program, pods, round+1, row, inWords(values))
}

// repeated is a row of something that was done `times` times, and not of pods.
func (r *report) repeated(program string, times, round int, row string, values map[string]float64) {
	r.write(record{Row: row, Program: program, Round: round, Values: values})
	fmt.Printf("%-8s %6d times round %d  %-16s %s\n", program, times, round+1, row, inWords(values))
}

// late is written as a row of its own, so that no median takes it for a measurement.
func (r *report) late(program string, pods, round int, err error, late *lateError) {
	fmt.Printf("%-8s %6d pods  round %d  %v\n", program, pods, round+1, err)
	r.write(record{Row: "late", Program: program, Pods: pods, Round: round,
		Values: map[string]float64{"missing": float64(late.missing)}, Facts: map[string]string{"what": err.Error()}})
}

func (r *report) write(line record) {
	line.Time = time.Now().UTC().Format(time.RFC3339)
	line.Cores, line.FSGroup = r.options.cores, r.options.load.fsGroup
	line.EmptyDir, line.HandOver, line.APIQPS = r.options.load.emptyDir, r.options.handOver, r.options.apiQPS
	text, err := json.Marshal(line)
	if err == nil {
		_, err = fmt.Fprintf(r.file, "%s\n", text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "beside: a result is lost:", err)
	}
}

func (r *report) machine(o options) error {
	facts, values, err := describeMachine(o.scratch)
	if err != nil {
		return err
	}
	r.write(record{Row: "machine", Facts: facts, Values: values})
	fmt.Printf("%s, %s, %s; 4 KiB write and fdatasync p50 %.2f ms, p99 %.2f ms\n", facts["cpu"], facts["kernel"],
		facts["filesystem"], values["fdatasync_p50_ms"], values["fdatasync_p99_ms"])
	return nil
}
