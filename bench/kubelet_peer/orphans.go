package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/util/removeall"
	volumetypes "k8s.io/kubernetes/pkg/volume/util/types"
)

const housekeepingPeriod = 2 * time.Second // kubelet's own constant

// housekeep removes the directories of pods that are gone, by the rule of cleanupOrphanedPodDirs in
// pkg/kubelet/kubelet_volumes.go: none of the pod's volumes may be known or mounted, directories of
// volumes must be empty, and nothing is removed across a mount.
func (p *pods) housekeep() {
	for range time.Tick(housekeepingPeriod) {
		entries, err := os.ReadDir(p.host.GetPodsDir())
		if err != nil {
			klog.ErrorS(err, "housekeeping")
			continue
		}
		for _, entry := range entries {
			uid := types.UID(entry.Name())
			if p.wanted(uid) {
				continue
			}
			if err := p.removeOrphan(uid); err != nil {
				klog.ErrorS(err, "orphaned pod", "uid", uid)
			}
		}
	}
}

func (p *pods) removeOrphan(uid types.UID) error {
	volumes, err := p.host.volumesOnDisk(uid)
	if err != nil {
		return err
	}
	if inUse, err := p.haveVolumes(uid, volumes); err != nil || inUse {
		return err
	}
	for _, volume := range volumes {
		if err := syscall.Rmdir(volume); err != nil {
			return fmt.Errorf("rmdir %s: %w", volume, err)
		}
	}
	directory := p.host.podDir(uid)
	if err := removeall.RemoveDirsOneFilesystem(p.host.mounter, filepath.Join(directory, "volumes")); err != nil {
		return err
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	var problems []error
	for _, entry := range entries {
		problems = append(problems,
			removeall.RemoveAllOneFilesystem(p.host.mounter, filepath.Join(directory, entry.Name())))
	}
	if err := errors.Join(append(problems, syscall.Rmdir(directory))...); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, uid)
	return nil
}

// podVolumesExist: known to the volume manager, or mounted.
func (p *pods) haveVolumes(uid types.UID, volumes []string) (bool, error) {
	if p.volumes.HasPossiblyMountedVolumesForPod(volumetypes.UniquePodName(uid)) {
		return true, nil
	}
	for _, volume := range volumes {
		notMounted, err := p.host.mounter.IsLikelyNotMountPoint(volume)
		if err != nil {
			return true, err
		}
		if !notMounted {
			return true, nil
		}
	}
	return false, nil
}
