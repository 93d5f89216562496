package main

import (
	"fmt"
	"slices"
	"strings"
)

var poolTableRows = []tableRow{
	{"pool ", "cycle_per_second", "stage, publish, unpublish, unstage: a second"},
	{"pool ", "cycle_p50_ms", "stage, publish, unpublish, unstage: p50, ms"},
	{"pool ", "cycle_p99_ms", "stage, publish, unpublish, unstage: p99, ms"},
	{"pool ", "cycle_cpu_ms", "stage, publish, unpublish, unstage: CPU, ms"},
	{"pool ", "together_per_second", "the same of several volumes at a time: a second"},
	{"pool ", "first_p50_ms", "first stage and publish, which formats an image: p50, ms"},
	{"pool ", "create_delete_per_second", "CreateVolume, DeleteVolume: a second"},
	{"pool ", "create_p50_ms", "CreateVolume: p50, ms"},
	{"pool ", "delete_p50_ms", "DeleteVolume: p50, ms"},
	{"many ", "create_per_second", "CreateVolume: a second"},
	{"many ", "create_first_ms", "CreateVolume: p50 of the first tenth, ms"},
	{"many ", "create_last_ms", "CreateVolume: p50 of the last tenth, ms"},
	{"many ", "create_cpu_ms", "CreateVolume: CPU, ms"},
	{"many ", "bring_per_second", "first stage and publish: a second"},
	{"many ", "bring_first_ms", "first stage and publish: p50 of the first tenth, ms"},
	{"many ", "bring_last_ms", "first stage and publish: p50 of the last tenth, ms"},
	{"many ", "bring_cpu_ms", "first stage and publish: CPU, ms"},
	{"many ", "take_per_second", "unpublish and unstage: a second"},
	{"many ", "take_first_ms", "unpublish and unstage: p50 of the first tenth, ms"},
	{"many ", "take_last_ms", "unpublish and unstage: p50 of the last tenth, ms"},
	{"many ", "take_cpu_ms", "unpublish and unstage: CPU, ms"},
	{"many ", "remove_per_second", "DeleteVolume: a second"},
	{"many ", "remove_first_ms", "DeleteVolume: p50 of the first tenth, ms"},
	{"many ", "remove_last_ms", "DeleteVolume: p50 of the last tenth, ms"},
	{"many ", "remove_cpu_ms", "DeleteVolume: CPU, ms"},
	{"many ", "pss_mib", "all there: memory (PSS), MiB"},
	{"many ", "list_us_each", "all there: ListVolumes by pages of 100, us for each"},
	{"cut ", "p50_ms", "snapshot of 10 GiB by reflink: p50, ms"},
	{"cut ", "p99_ms", "snapshot of 10 GiB by reflink: p99, ms"},
	{"cut ", "stall_p50_ms", "longest write during it: p50, ms"},
	{"cut ", "stall_p99_ms", "longest write during it: p99, ms"},
	{"cut ", "write_p50_ms", "a write without a snapshot: p50, ms"},
	{"cut ", "write_p99_ms", "a write without a snapshot: p99, ms"},
	{"cut ", "write_max_ms", "a write without a snapshot: longest, ms"},
}

// printPoolTable has a table for each backend, and for each writer beside snapshots.
func printPoolTable(name string) error {
	records, err := readResults(name)
	if err != nil {
		return err
	}
	cells := map[cell][]float64{}
	var rows []string
	for _, r := range records {
		if r.Row == "machine" {
			continue
		}
		if !slices.Contains(rows, r.Row) {
			rows = append(rows, r.Row)
		}
		for value, number := range r.Values {
			key := cell{row: r.Row, value: value, program: r.Program}
			cells[key] = append(cells[key], number)
		}
	}
	printMachine(records)
	for _, row := range rows {
		fmt.Printf("\n**%s**\n\n| | volumed | bare | volumed / bare | pd | volumed / pd |\n|---|---:|---:|---:|---:|---:|\n", row)
		for _, line := range poolTableRows {
			if !strings.HasPrefix(row, line.row) {
				continue
			}
			of := func(program string) []float64 { return cells[cell{row: row, value: line.value, program: program}] }
			fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", line.label, inTable(of("volumed")), inTable(of("bare")),
				ratio(of("volumed"), of("bare")), inTable(of("pd")), ratio(of("volumed"), of("pd")))
		}
	}
	return nil
}
