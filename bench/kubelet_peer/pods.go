package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
)

// pods stands for kubelet's pod workers, one goroutine for each pod: it makes the pod's directories,
// waits for its volumes, and syncs it again after a while (pkg/kubelet/pod_workers.go).
type pods struct {
	ctx           context.Context
	host          *node
	syncFrequency time.Duration
	manager       kubepod.Manager
	volumes       volumemanager.VolumeManager

	mu      sync.Mutex
	workers map[types.UID]*podWorker
}

// podWorker's fields but the channels are guarded by the mutex of `pods`.
type podWorker struct {
	pod     *v1.Pod
	stop    context.CancelFunc
	syncNow chan struct{}
	ready   bool
	removed bool
	problem error // of the last sync
}

func newPods(ctx context.Context, host *node, syncFrequency time.Duration) *pods {
	return &pods{ctx: ctx, host: host, syncFrequency: syncFrequency, workers: map[types.UID]*podWorker{}}
}

// For the volume manager: whether a pod's containers have ended. A pod here has none, so they have as
// soon as it is removed.
func (p *pods) ShouldPodContainersBeTerminating(uid types.UID) bool { return !p.wanted(uid) }
func (p *pods) ShouldPodRuntimeBeRemoved(uid types.UID) bool        { return !p.wanted(uid) }

func (p *pods) wanted(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	worker := p.workers[uid]
	return worker != nil && !worker.removed
}

func (p *pods) add(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if worker := p.workers[pod.UID]; worker != nil && !worker.removed {
		worker.pod = pod
		p.manager.UpdatePod(pod)
		return
	}
	ctx, stop := context.WithCancel(p.ctx)
	worker := &podWorker{pod: pod, stop: stop, syncNow: make(chan struct{}, 1)}
	p.workers[pod.UID] = worker
	p.manager.AddPod(pod)
	go p.work(ctx, worker)
}

func (p *pods) work(ctx context.Context, worker *podWorker) {
	for ctx.Err() == nil {
		p.mu.Lock()
		pod := worker.pod
		p.mu.Unlock()
		err := p.sync(ctx, pod)
		p.mu.Lock()
		worker.problem = err
		worker.ready = worker.ready || err == nil
		p.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-worker.syncNow:
		case <-time.After(p.untilNextSync(err)):
		}
	}
}

func (p *pods) sync(ctx context.Context, pod *v1.Pod) error {
	for _, name := range []string{"", "volumes", "plugins"} { // makePodDataDirs
		if err := os.MkdirAll(filepath.Join(p.host.podDir(pod.UID), name), 0o750); err != nil {
			return err
		}
	}
	return p.volumes.WaitForAttachAndMount(ctx, pod)
}

// completeWork of pod_workers.go: jitter of up to a half; ten seconds after a failure.
func (p *pods) untilNextSync(err error) time.Duration {
	period := p.syncFrequency
	if err != nil {
		period = 10 * time.Second
	}
	return period + time.Duration(rand.Float64()*0.5*float64(period))
}

// remove takes these pods away, or all of them when there are none. Their volumes go by the
// reconciler, their directories by housekeeping.
func (p *pods) remove(uids []types.UID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(uids) == 0 {
		for uid := range p.workers {
			uids = append(uids, uid)
		}
	}
	var problems []error
	for _, uid := range uids {
		worker := p.workers[uid]
		if worker == nil {
			problems = append(problems, fmt.Errorf("no pod %q", uid))
			continue
		}
		if worker.removed {
			continue
		}
		worker.removed = true
		worker.stop()
		p.manager.RemovePod(worker.pod)
		go p.terminate(worker.pod)
	}
	return errors.Join(problems...)
}

// SyncTerminatedPod waits for the unmounts, and is tried again while they fail.
func (p *pods) terminate(pod *v1.Pod) {
	for {
		err := p.volumes.WaitForUnmount(p.ctx, pod)
		if err == nil {
			return
		}
		klog.ErrorS(err, "volumes are not unmounted", "pod", klog.KObj(pod))
	}
}

// syncAll lets every pod sync now instead of in its turn.
func (p *pods) syncAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, worker := range p.workers {
		select {
		case worker.syncNow <- struct{}{}:
		default: // one is asked for already
		}
	}
}

// podStatus is the answer to /status.
type podStatus struct {
	Pods     int               `json:"pods"`
	Ready    int               `json:"ready"`
	Synced   bool              `json:"synced"` // the reconciler knows what an earlier one left
	Problems map[string]string `json:"problems"`
}

func (p *pods) status() podStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	status := podStatus{Synced: p.volumes.ReconcilerStatesHasBeenSynced(), Problems: map[string]string{}}
	for uid, worker := range p.workers {
		if worker.removed {
			continue
		}
		status.Pods++
		if worker.ready {
			status.Ready++
		}
		if worker.problem != nil {
			status.Problems[string(uid)] = worker.problem.Error()
		}
	}
	return status
}
