package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	computebeta "google.golang.org/api/compute/v0.beta"
	compute "google.golang.org/api/compute/v1"
)

// state is all that the cloud knows, and the truth: whatever else lies in its folder is made to agree with it when
// the cloud starts (cloud.align), so that a cloud which was killed between an effect and its note goes on as if the
// call had never come, or had been carried out.
type state struct {
	Disks     map[string]*computebeta.Disk       `json:"disks"`     // by zone/name
	Attached  map[string][]*compute.AttachedDisk `json:"attached"`  // by the instance's name
	Snapshots map[string]*compute.Snapshot       `json:"snapshots"` // by name
}

// readState gives an empty state for a file that is not there.
func readState(path string) (state, error) {
	known := state{
		Disks:     map[string]*computebeta.Disk{},
		Attached:  map[string][]*compute.AttachedDisk{},
		Snapshots: map[string]*compute.Snapshot{},
	}
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return known, nil
	}
	if err != nil {
		return known, err
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return known, fmt.Errorf("%s: %w", path, err)
	}
	return known, nil
}

// write replaces the file as a whole: whoever is killed meanwhile leaves the old one or the new one.
func (s *state) write(path string) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
