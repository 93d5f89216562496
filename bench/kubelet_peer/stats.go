package main

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/server/stats"
	"k8s.io/kubernetes/pkg/volume"
	volumetypes "k8s.io/kubernetes/pkg/volume/util/types"
)

// volumeStatsProvider tells kubelet's resource analyzer of pods and their volumes. The other methods
// of a Provider are about containers; the part of the analyzer that runs here calls none of them.
type volumeStatsProvider struct {
	stats.Provider
	pods *pods
}

// measureVolumes runs kubelet's own measuring of volumes: a goroutine for each pod.
func measureVolumes(ctx context.Context, pods *pods, period time.Duration) {
	stats.NewResourceAnalyzer(ctx, volumeStatsProvider{pods: pods}, period, pods.host.recorder).Start(ctx)
}

func (s volumeStatsProvider) GetPods() []*v1.Pod { return s.pods.manager.GetPods() }

func (s volumeStatsProvider) ListVolumesForPod(uid types.UID) (map[string]volume.Volume, bool) {
	found := map[string]volume.Volume{}
	for name, mounted := range s.pods.volumes.GetMountedVolumesForPod(volumetypes.UniquePodName(uid)) {
		if mounted.Mounter != nil {
			found[name] = mounted.Mounter
		}
	}
	return found, len(found) > 0
}

func (s volumeStatsProvider) ListBlockVolumesForPod(uid types.UID) (map[string]volume.BlockVolume, bool) {
	found := map[string]volume.BlockVolume{}
	for name, mounted := range s.pods.volumes.GetMountedVolumesForPod(volumetypes.UniquePodName(uid)) {
		if mounted.BlockVolumeMapper != nil {
			found[name] = mounted.BlockVolumeMapper
		}
	}
	return found, len(found) > 0
}
