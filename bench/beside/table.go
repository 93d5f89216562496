package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

type tableRow struct{ row, value, label string }

// What the table shows of each row, in this order. A value that only one program has has no ratio.
var tableRows = []tableRow{
	{"sequential", "p50_ms", "one pod after another: p50, ms"},
	{"sequential", "p99_ms", "one pod after another: p99, ms"},
	{"sequential", "cpu_per_pod_ms", "one pod after another: CPU of each, ms"},
	{"burst", "first_ms", "burst: first pod ready, ms"},
	{"burst", "p50_ms", "burst: half of the pods ready, ms"},
	{"burst", "all_ms", "burst: all pods ready, ms"},
	{"burst", "cpu_per_pod_ms", "burst: CPU per pod, ms"},
	{"burst", "peak_pss_mib", "burst: peak memory (PSS), MiB"},
	{"burst", "driver_cpu_ms", "burst: the driver's own CPU, ms"},
	{"burst", "others_cpu_ms", "burst: CPU of all else on the machine, ms"},
	{"beside", "p50_ms", "one more pod beside a burst: p50, ms"},
	{"beside", "p99_ms", "one more pod beside a burst: p99, ms"},
	{"queries", "status_p50_ms", "all pods' status during a burst: p50, ms"},
	{"queries", "status_max_ms", "all pods' status during a burst: longest, ms"},
	{"queries", "healthz_max_ms", "healthz during a burst: longest, ms"},
	{"queries", "metrics_max_ms", "scrape during a burst: longest, ms"},
	{"update", "first_ms", "ConfigMap changed: first pod has it, ms"},
	{"update", "last_ms", "ConfigMap changed: last pod has it, ms"},
	{"update", "cpu_ms", "ConfigMap changed: CPU, ms"},
	{"update-in-turn", "first_ms", "the same, kubelet in its own turn: first, ms"},
	{"update-in-turn", "last_ms", "the same, kubelet in its own turn: last, ms"},
	{"restart", "all_ms", "kill -9 and start: all ready, ms"},
	{"restart", "cpu_ms", "kill -9 and start: CPU, ms"},
	{"restart", "mounts_replaced", "kill -9 and start: mounts made anew"},
	{"idle", "cpu_ms", "60 s at rest, volumes measured: CPU, ms"},
	{"idle", "peak_pss_mib", "60 s at rest: memory (PSS), MiB"},
	{"delete", "volumes_ms", "delete all: volumes gone, ms"},
	{"delete", "directories_ms", "delete all: directories gone, ms"},
	{"delete", "cpu_per_pod_ms", "delete all: CPU per pod, ms"},
	{"csi-single", "p50_ms", "a pod with a CSI volume after another: published, p50, ms"},
	{"csi-single", "p99_ms", "a pod with a CSI volume after another: published, p99, ms"},
}

// The same of a burst of CSI volumes, for each behaviour of the driver: its row is "csi 50ms" or the like.
var csiTableRows = []tableRow{
	{"", "per_second", "published, volumes a second"},
	{"", "p50_ms", "published, p50, ms"},
	{"", "p99_ms", "published, p99, ms"},
	{"", "said_ms", "the program says that all are ready, ms"},
	{"", "cpu_per_volume_ms", "CPU per volume, ms"},
	{"", "driver_cpu_ms", "the CSI driver's CPU, and the measuring's, ms"},
	{"", "others_cpu_ms", "CPU of all else on the machine, ms"},
	{"", "peak_pss_mib", "peak memory (PSS), MiB"},
	{"", "rpcs_per_volume", "RPCs per volume"},
	{"", "most_at_once", "most RPCs at a time"},
	{"", "gone_per_second", "delete all: unstaged, volumes a second"},
	{"", "gone_p50_ms", "delete all: unstaged, p50, ms"},
	{"", "gone_p99_ms", "delete all: unstaged, p99, ms"},
	{"", "gone_directories_ms", "delete all: directories gone, ms"},
	{"", "gone_cpu_per_volume_ms", "delete all: CPU per volume, ms"},
	{"", "gone_rpcs_per_volume", "delete all: RPCs per volume"},
}

func csiLines(rows []string) []tableRow {
	var lines []tableRow
	for _, row := range rows {
		for _, line := range csiTableRows {
			lines = append(lines, tableRow{row, line.value, row + ": " + line.label})
		}
	}
	return lines
}

// What the bare loop takes for the work of a line of the table.
var floorOf = map[string]string{
	"burst/cpu_per_pod_ms":  "setup_cpu_per_pod_ms",
	"delete/cpu_per_pod_ms": "teardown_cpu_per_pod_ms",
}

// setting is what must be equal in figures that one median is of.
type setting struct {
	pods, cores        int
	fsGroup            bool
	emptyDir, handOver string
	apiQPS             int
}

type cell struct {
	setting
	row, value, program string
}

func readResults(name string) ([]record, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []record
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one record
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, len(all)+1, err)
		}
		all = append(all, one)
	}
	return all, lines.Err()
}

func printTable(name string) error {
	records, err := readResults(name)
	if err != nil {
		return err
	}
	cells := map[cell][]float64{}
	var settings []setting
	var csiRows []string
	for _, r := range records {
		if r.Row == "machine" {
			continue
		}
		if strings.HasPrefix(r.Row, "csi ") && !slices.Contains(csiRows, r.Row) {
			csiRows = append(csiRows, r.Row)
		}
		s := r.setting()
		if !slices.Contains(settings, s) {
			settings = append(settings, s)
		}
		for value, number := range r.Values {
			key := cell{s, r.Row, value, r.Program}
			cells[key] = append(cells[key], number)
		}
	}
	printMachine(records)
	for _, s := range settings {
		printSetting(s, append(slices.Clip(tableRows), csiLines(csiRows)...), cells)
		printLate(s, records)
	}
	return nil
}

func (r record) setting() setting {
	return setting{r.Pods, r.Cores, r.FSGroup, r.EmptyDir, r.HandOver, r.APIQPS}
}

func printLate(s setting, records []record) {
	for _, r := range records {
		if r.Row == "late" && r.setting() == s {
			fmt.Printf("\n%s, round %d: %s.\n", r.Program, r.Round+1, r.Facts["what"])
		}
	}
}

// The last run's machine; figures of several machines do not belong into one file.
func printMachine(records []record) {
	for _, r := range slices.Backward(records) {
		if r.Row == "machine" {
			fmt.Printf("%s, %s, %s; a 4 KiB write with fdatasync takes %.2f ms (p50), %.2f ms (p99).\n", r.Facts["cpu"],
				r.Facts["kernel"], r.Facts["filesystem"], r.Values["fdatasync_p50_ms"], r.Values["fdatasync_p99_ms"])
			return
		}
	}
}

func printSetting(s setting, lines []tableRow, cells map[cell][]float64) {
	processors := "all processors"
	if s.cores > 0 {
		processors = fmt.Sprintf("%d processors", s.cores)
	}
	group := "no fsGroup"
	if s.fsGroup {
		group = "with fsGroup"
	}
	limit := ""
	if s.apiQPS > 0 {
		limit = fmt.Sprintf(", kubelet's requests limited to %d a second", s.apiQPS)
	}
	fmt.Printf("\n**%d pods, %s, %s, emptyDir on %s, burst by %s%s**\n\n", s.pods, processors, group, s.emptyDir, s.handOver, limit)
	fmt.Print("| | volumed | kubelet | volumed / kubelet | floor | volumed / floor |\n|---|---:|---:|---:|---:|---:|\n")
	for _, line := range lines {
		ours := cells[cell{s, line.row, line.value, "volumed"}]
		theirs := cells[cell{s, line.row, line.value, "kubelet"}]
		if len(ours) == 0 && len(theirs) == 0 {
			continue
		}
		floor := cells[cell{s, "floor", floorOf[line.row+"/"+line.value], "floor"}]
		fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", line.label, inTable(ours), inTable(theirs), ratio(ours, theirs),
			inTable(floor), ratio(ours, floor))
	}
}

func ratio(ours, theirs []float64) string {
	if len(ours) == 0 || len(theirs) == 0 || median(theirs) == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g", median(ours)/median(theirs))
}

func inTable(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	m := median(values)
	if m >= 100 {
		return fmt.Sprintf("%.0f", m)
	}
	return fmt.Sprintf("%.3g", m)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
