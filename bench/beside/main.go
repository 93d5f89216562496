// beside measures volumed and kubelet's volume manager in turns, on one machine and with the same
// load. What it reports as done it has read from the mount table and the files, in the same way for
// both. README.md has the rows and how each is measured.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

type options struct {
	volumed, peer, floor, protoSet, scratch, disk, results string
	pods                                                   []int
	rounds, cores, singles                                 int
	load                                                   load
	handOver                                               string
	rows, only                                             []string
	csi                                                    []csiSetting
	csiCalls, apiQPS                                       int
}

const usage = `usage: beside run --volumed FILE --peer FILE --proto-set FILE [FLAGS]
       beside table RESULTS    a Markdown table of the medians
       beside pool --volumed FILE [--pd FILE] [FLAGS]    volumed's own volumes, by its CSI driver
       beside pool-table RESULTS`

func parseOptions(words []string) (options, error) {
	var o options
	var pods, rows, only, csi string
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	flags.StringVar(&o.volumed, "volumed", "", "the volumed program, which finds its volumed-worker")
	flags.StringVar(&o.peer, "peer", "", "the kubelet_peer program")
	flags.StringVar(&o.floor, "floor", "", "the floor_bench program; empty: the floor is not measured")
	flags.StringVar(&o.protoSet, "proto-set", "", "what protoc --descriptor_set_out made of proto/agent.proto")
	flags.StringVar(&o.scratch, "scratch", "/var/tmp/volumed-beside", "where the roots are made")
	flags.StringVar(&o.disk, "disk", "loop", "the filesystem of the roots: loop (a new ext4 with a journal, in a file there) or there (the scratch directory's own)")
	flags.StringVar(&o.results, "results", "results.jsonl", "JSON lines are added here")
	flags.StringVar(&pods, "pods", "200,1000", "how many pods, each a run of its own")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each is measured")
	flags.IntVar(&o.cores, "cores", 0, "how many processors the programs get; 0: all. The driver gets the others, if any")
	flags.IntVar(&o.singles, "singles", 40, "row sequential: how many pods")
	flags.BoolVar(&o.load.fsGroup, "fsgroup", false, "pods have an fsGroup")
	flags.StringVar(&o.load.emptyDir, "emptydir", "disk", "the emptyDir's medium: disk or memory")
	flags.StringVar(&o.handOver, "hand-over", "file", "how volumed gets a burst: file (one rename), files (one per pod), apply (one call)")
	flags.StringVar(&rows, "rows", strings.Join(defaultRows, ","), "which of "+strings.Join(allRows, ","))
	flags.StringVar(&only, "only", "volumed,kubelet", "which of the two programs")
	flags.StringVar(&csi, "csi", "0s,50ms", "row csi: how long the CSI driver takes for each RPC, and after a colon how many it works on at a time (else any number)")
	flags.IntVar(&o.csiCalls, "csi-calls", defaultCSICalls, "volumed's csi-calls-per-driver")
	flags.IntVar(&o.apiQPS, "api-qps", 0, "how many requests a second kubelet's client makes; 50 is a kubelet's default, 0: any number")
	flags.Parse(words)
	o.rows, o.only = strings.Split(rows, ","), strings.Split(only, ",")
	for _, word := range strings.Split(pods, ",") {
		number, err := strconv.Atoi(word)
		if err != nil || number < 1 {
			return o, fmt.Errorf("--pods %s: %q is no number of pods", pods, word)
		}
		o.pods = append(o.pods, number)
	}
	for _, word := range strings.Split(csi, ",") {
		setting, err := parseCSISetting(word)
		if err != nil {
			return o, fmt.Errorf("--csi %s: %w", csi, err)
		}
		o.csi = append(o.csi, setting)
	}
	return o, o.check()
}

func (o *options) check() error {
	for _, row := range o.rows {
		if !slices.Contains(allRows, row) {
			return fmt.Errorf("--rows: there is no row %q", row)
		}
	}
	for _, name := range o.only {
		if name != "volumed" && name != "kubelet" {
			return fmt.Errorf("--only: %q is neither volumed nor kubelet", name)
		}
	}
	if !slices.Contains([]string{"file", "files", "apply"}, o.handOver) {
		return fmt.Errorf("--hand-over: %q is none of file, files, apply", o.handOver)
	}
	if o.load.emptyDir != "disk" && o.load.emptyDir != "memory" {
		return fmt.Errorf("--emptydir: %q is neither disk nor memory", o.load.emptyDir)
	}
	if o.disk != "loop" && o.disk != "there" {
		return fmt.Errorf("--disk: %q is neither loop nor there", o.disk)
	}
	for _, file := range []string{o.volumed, o.peer, o.protoSet} {
		if _, err := os.Stat(file); err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root: it mounts")
	}
	return nil
}

func run(words []string) error {
	o, err := parseOptions(words)
	if err != nil {
		return err
	}
	if inOwnNamespace, err := enterOwnMountNamespace(); err != nil || !inOwnNamespace {
		return err
	}
	if err := prepareScratch(&o); err != nil {
		return err
	}
	bench, err := newBench(o)
	if err != nil {
		return err
	}
	// An interrupt must not leave the programs behind.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-interrupts
		bench.end()
		os.Exit(130)
	}()
	defer bench.end()
	return bench.run()
}

func main() {
	var err error
	switch {
	case len(os.Args) >= 2 && os.Args[1] == "run":
		err = run(os.Args[2:])
	case len(os.Args) == 3 && os.Args[1] == "table":
		err = printTable(os.Args[2])
	case len(os.Args) >= 2 && os.Args[1] == "pool":
		err = runPool(os.Args[2:])
	case len(os.Args) == 3 && os.Args[1] == "pool-table":
		err = printPoolTable(os.Args[2])
	default:
		err = errors.New(usage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "beside:", err)
		os.Exit(1)
	}
}
