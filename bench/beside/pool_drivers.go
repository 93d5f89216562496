package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// driverWay has its volumes by the CSI driver at two sockets, which may be one.
type driverWay struct {
	processes  []*process
	controller csi.ControllerClient
	node       csi.NodeClient
	identity   csi.IdentityClient
	places     string
	nodeID     string // attaches by the controller; empty: the driver's stage does that
	parameters map[string]string
	fsType     string
}

const driverDeadline = 2 * time.Minute

const (
	poolConfig = `root: %[1]s/root
csi-only: true
csi-serve: %[1]s/csi.sock
csi-target-roots: [%[2]s]
socket: %[1]s/socket
socket-group: ""
node-name: bench
metrics-address: ""
log-level: warning
volume-plugin-dir: ""
pool: {xfs: %[3]s/xfs/pool, btrfs: %[3]s/btrfs/pool}
`
	pdName = "pd.csi.storage.gke.io"
	pdZone = "country-region-zone"
	pdNode = "projects/test-project/zones/" + pdZone + "/instances/n1"
)

// startVolumedDriver starts the agent as a CSI driver alone. Its directories outlive it.
func startVolumedDriver(o poolOptions) (*driverWay, error) {
	common, err := newProcess("volumed", o.scratch, 0)
	if err != nil {
		return nil, err
	}
	places := filepath.Join(o.scratch, "places")
	for _, directory := range []string{common.scratch, places, o.scratch + "/xfs/pool", o.scratch + "/btrfs/pool"} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(common.scratch, "config.yaml")
	text := fmt.Appendf(nil, poolConfig, common.scratch, places, o.scratch)
	if err := os.WriteFile(config, text, 0o644); err != nil {
		return nil, err
	}
	if err := common.spawn(o.volumed, "run", "--config", config); err != nil {
		return nil, err
	}
	socket := filepath.Join(common.scratch, "csi.sock")
	return connectDriver(&driverWay{processes: []*process{common}, places: places}, socket, socket)
}

// startPd starts the two servers of the driver of persistent disks, whose disks are files of the xfs.
func startPd(o poolOptions) (*driverWay, error) {
	cloud, err := newProcess("pd", o.scratch, 0)
	if err != nil {
		return nil, err
	}
	node := &process{name: cloud.name, scratch: cloud.scratch, group: cloud.group}
	disks := filepath.Join(o.scratch, "xfs", "pd")
	if err := os.MkdirAll(disks, 0o755); err != nil {
		return nil, err
	}
	sockets := map[string]string{}
	for role, process := range map[string]*process{"cloud": cloud, "node": node} {
		sockets[role] = filepath.Join(cloud.scratch, role+".sock")
		if err := process.spawn(o.pd, "--role", role, "--dir", disks, "--socket", sockets[role], "--zone", pdZone,
			"--driver-name", pdName, "--node", "n1"); err != nil {
			return nil, err
		}
	}
	way := &driverWay{processes: []*process{cloud, node}, places: filepath.Join(o.scratch, "pd-places"), nodeID: pdNode}
	return connectDriver(way, sockets["cloud"], sockets["node"])
}

func connectDriver(w *driverWay, controller, node string) (*driverWay, error) {
	for i, socket := range []string{controller, node} {
		conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		if i == 0 {
			w.controller, w.identity = csi.NewControllerClient(conn), csi.NewIdentityClient(conn)
		} else {
			w.node = csi.NewNodeClient(conn)
		}
	}
	ctx, stop := driverContext()
	defer stop()
	if _, err := w.node.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{}, grpc.WaitForReady(true)); err != nil {
		log, _ := os.ReadFile(filepath.Join(w.processes[0].scratch, "log"))
		return nil, fmt.Errorf("%w; its log:\n%s", err, log)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		answer, err := w.identity.Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
		if err == nil && (answer.Ready == nil || answer.Ready.Value) {
			return w, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the driver at %s is not ready: %v", controller, err)
		}
	}
}

func driverContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), driverDeadline)
}

func (w *driverWay) end() error {
	var problems []error
	for _, process := range w.processes {
		problems = append(problems, process.kill())
	}
	problems = append(problems, w.processes[0].group.kill(), w.processes[0].group.remove())
	return errors.Join(problems...)
}

func (w *driverWay) cpu() (time.Duration, error) { return w.processes[0].group.cpu() }

// of makes the same driver's way to other volumes.
func (w *driverWay) of(fsType string, parameters map[string]string) *driverWay {
	other := *w
	other.fsType, other.parameters = fsType, parameters
	return &other
}

func (w *driverWay) capability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: w.fsType}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// The ids of the driver of persistent disks have slashes.
func (w *driverWay) place(id string) string     { return filepath.Join(w.places, filepath.Base(id)) }
func (w *driverWay) targetOf(id string) string  { return filepath.Join(w.place(id), "pod", "target") }
func (w *driverWay) stagingOf(id string) string { return filepath.Join(w.place(id), "staging") }

func (w *driverWay) create(name string, bytes int64) (string, error) {
	ctx, stop := driverContext()
	defer stop()
	// A driver that was just started opens its pools still.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		answer, err := w.controller.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name, Parameters: w.parameters,
			CapacityRange:      &csi.CapacityRange{RequiredBytes: bytes},
			VolumeCapabilities: []*csi.VolumeCapability{w.capability()}})
		if err == nil {
			return answer.Volume.VolumeId, nil
		}
		if !strings.Contains(err.Error(), "Unavailable") || time.Now().After(deadline) {
			return "", err
		}
	}
}

func (w *driverWay) remove(id string) error {
	ctx, stop := driverContext()
	defer stop()
	_, err := w.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	return err
}

func (w *driverWay) bring(id string) error {
	ctx, stop := driverContext()
	defer stop()
	for _, directory := range []string{w.stagingOf(id), filepath.Dir(w.targetOf(id))} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return err
		}
	}
	var published map[string]string
	if w.nodeID != "" {
		answer, err := w.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id,
			NodeId: w.nodeID, VolumeCapability: w.capability()})
		if err != nil {
			return err
		}
		published = answer.PublishContext
	}
	if _, err := w.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: id, PublishContext: published,
		StagingTargetPath: w.stagingOf(id), VolumeCapability: w.capability()}); err != nil {
		return err
	}
	_, err := w.node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: id, PublishContext: published,
		StagingTargetPath: w.stagingOf(id), TargetPath: w.targetOf(id), VolumeCapability: w.capability()})
	return err
}

func (w *driverWay) take(id string) error {
	ctx, stop := driverContext()
	defer stop()
	if _, err := w.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: w.targetOf(id)}); err != nil {
		return err
	}
	if _, err := w.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: w.stagingOf(id)}); err != nil {
		return err
	}
	if w.nodeID == "" {
		return nil
	}
	_, err := w.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: w.nodeID})
	return err
}
