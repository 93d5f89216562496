package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/GoogleCloudPlatform/k8s-cloud-provider/pkg/cloud/meta"
	csi "github.com/container-storage-interface/spec/lib/go/csi"
	computebeta "google.golang.org/api/compute/v0.beta"
	compute "google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"k8s.io/klog/v2"

	"sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/common"
	gce "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/gce-cloud-provider/compute"
	"sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/parameters"
)

const project = "test-project"

// cloud is the compute API that the driver's controller talks to: a disk is a sparse file, an attached one a loop
// device with a link in its instance's folder, a snapshot a copy. What keeps nothing (zones, URIs) is left to the
// provider of the driver's own tests. Whatever it hands out is a copy, for the driver reads it without the lock.
type cloud struct {
	*gce.FakeCloudProvider
	dir, zone string
	mu        sync.Mutex
	known     state
}

func apiError(code int, reason, format string, arguments ...any) error {
	message := fmt.Sprintf(format, arguments...)
	return &googleapi.Error{Code: code, Message: message, Errors: []googleapi.ErrorItem{{Reason: reason, Message: message}}}
}

func notFound(what, name string) error {
	return apiError(http.StatusNotFound, "notFound", "%s %s was not found", what, name)
}

func diskID(key *meta.Key) string              { return key.Zone + "/" + key.Name }
func (c *cloud) image(id string) string        { return filepath.Join(c.dir, "disks", id) }
func (c *cloud) copyOf(snapshot string) string { return filepath.Join(c.dir, "snapshots", snapshot) }
func (c *cloud) link(instance, disk string) string {
	return filepath.Join(c.dir, "nodes", instance, "google-"+disk)
}

// note is called under the lock, and before the answer. A cloud that cannot write down what it knows must end.
func (c *cloud) note() {
	if err := c.known.write(filepath.Join(c.dir, "state.json")); err != nil {
		klog.Exit("the state cannot be written: ", err)
	}
}

func (c *cloud) GetDisk(_ context.Context, _ string, key *meta.Key) (*gce.CloudDisk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	disk, ok := c.known.Disks[diskID(key)]
	if !ok {
		return nil, notFound("disk", diskID(key))
	}
	copied := *disk
	return gce.CloudDiskFromBeta(&copied), nil
}

// listed has the names as the API gives them; the driver makes volume IDs of the self link, and the nodes that have the
// volume of the users.
func (c *cloud) listed(disk *computebeta.Disk) *compute.Disk {
	return &compute.Disk{Name: disk.Name, SizeGb: disk.SizeGb, Type: disk.Type, Status: disk.Status, Zone: disk.Zone,
		SelfLink: disk.SelfLink, Labels: disk.Labels, SourceSnapshotId: disk.SourceSnapshotId, SourceDiskId: disk.SourceDiskId,
		Users: c.users(disk.Name)}
}

func (c *cloud) ListDisks(context.Context, []googleapi.Field) ([]*compute.Disk, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	disks := []*compute.Disk{}
	for _, disk := range c.known.Disks {
		disks = append(disks, c.listed(disk))
	}
	return disks, "", nil
}

func (c *cloud) ListDisksWithFilter(ctx context.Context, fields []googleapi.Field, _ string) ([]*compute.Disk, string, error) {
	return c.ListDisks(ctx, fields)
}

// fill gives a new disk its bytes: those of a snapshot, of another disk, or none.
func (c *cloud) fill(file, snapshotID, sourceVolumeID string) error {
	if snapshotID != "" {
		_, _, name, err := common.SnapshotIDToProjectKey(snapshotID)
		if err != nil {
			return err
		}
		if _, ok := c.known.Snapshots[name]; !ok {
			return notFound("snapshot", name)
		}
		return copyImage(c.copyOf(name), file)
	}
	if sourceVolumeID != "" {
		_, source, err := common.VolumeIDToKey(sourceVolumeID)
		if err != nil {
			return err
		}
		if _, ok := c.known.Disks[diskID(source)]; !ok {
			return notFound("disk", diskID(source))
		}
		return copyImage(c.image(diskID(source)), file)
	}
	return os.WriteFile(file, nil, 0o600)
}

func (c *cloud) InsertDisk(ctx context.Context, project string, key *meta.Key, params parameters.DiskParameters, bytes int64, limits *csi.CapacityRange, _ []string, snapshotID, sourceVolumeID string, multiWriter bool, accessMode string) error {
	if key.Type() != meta.Zonal || strings.ContainsAny(key.Name+key.Zone, "/") {
		return apiError(http.StatusBadRequest, "invalid", "only zonal disks are made here, not %v", key)
	}
	if existing, err := c.GetDisk(ctx, project, key); err == nil {
		return gce.ValidateExistingDisk(ctx, existing, params, limits.GetRequiredBytes(), limits.GetLimitBytes(), multiWriter, accessMode)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	file := c.image(diskID(key))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := c.fill(file, snapshotID, sourceVolumeID); err != nil {
		return err
	}
	size := common.BytesToGbRoundUp(bytes)
	if err := os.Truncate(file, common.GbToBytes(size)); err != nil {
		return err
	}
	c.known.Disks[diskID(key)] = &computebeta.Disk{
		Name: key.Name, Zone: key.Zone, SizeGb: size, Status: "READY", Labels: params.Labels,
		Type:             c.GetDiskTypeURI(project, key, params.DiskType),
		SelfLink:         fmt.Sprintf("%sprojects/%s/zones/%s/disks/%s", gce.BasePath, project, key.Zone, key.Name),
		SourceSnapshotId: snapshotID, SourceDiskId: sourceVolumeID,
		ProvisionedIops: params.ProvisionedIOPSOnCreate, ProvisionedThroughput: params.ProvisionedThroughputOnCreate,
		AccessMode: accessMode, MultiWriter: multiWriter,
	}
	c.note()
	return nil
}

func (c *cloud) DeleteDisk(_ context.Context, _ string, key *meta.Key) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := diskID(key)
	if _, ok := c.known.Disks[id]; !ok {
		return nil
	}
	if users := c.users(key.Name); len(users) > 0 {
		return apiError(http.StatusBadRequest, "resourceInUseByAnotherResource", "disk %s is used by %v", id, users)
	}
	delete(c.known.Disks, id)
	c.note()
	return os.Remove(c.image(id))
}

// change alters a disk that is there, under the lock.
func (c *cloud) change(key *meta.Key, alter func(disk *computebeta.Disk)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	disk, ok := c.known.Disks[diskID(key)]
	if !ok {
		return notFound("disk", diskID(key))
	}
	alter(disk)
	c.note()
	return nil
}

func (c *cloud) UpdateDisk(_ context.Context, _ string, key *meta.Key, _ *gce.CloudDisk, params parameters.ModifyVolumeParameters) error {
	return c.change(key, func(disk *computebeta.Disk) {
		if params.IOPS != nil {
			disk.ProvisionedIops = *params.IOPS
		}
		if params.Throughput != nil {
			disk.ProvisionedThroughput = *params.Throughput
		}
	})
}

func (c *cloud) SetDiskAccessMode(_ context.Context, _ string, key *meta.Key, mode string) error {
	return c.change(key, func(disk *computebeta.Disk) { disk.AccessMode = mode })
}

func (c *cloud) SetDiskLabels(_ context.Context, _ string, key *meta.Key, _ *gce.CloudDisk, labels map[string]string) error {
	return c.change(key, func(disk *computebeta.Disk) { disk.Labels = labels })
}

// ResizeDisk writes down the new size first: a filesystem may grow with the file at once, so a cloud that starts
// again must know of the growth, and never take it back.
func (c *cloud) ResizeDisk(_ context.Context, _ string, key *meta.Key, bytes int64) (int64, error) {
	var size int64
	err := c.change(key, func(disk *computebeta.Disk) {
		disk.SizeGb = max(disk.SizeGb, common.BytesToGbRoundUp(bytes))
		size = disk.SizeGb
	})
	if err != nil {
		return -1, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return size, c.grow(diskID(key), size)
}

// grow makes the file and the devices on it as large as the disk.
func (c *cloud) grow(id string, size int64) error {
	info, err := os.Stat(c.image(id))
	if err != nil {
		return err
	}
	if info.Size() < common.GbToBytes(size) {
		if err := os.Truncate(c.image(id), common.GbToBytes(size)); err != nil {
			return err
		}
	}
	loops, err := loopsBelow(c.dir)
	if err != nil {
		return err
	}
	for device, image := range loops {
		if image == c.image(id) {
			if _, err := run("losetup", "--set-capacity", device); err != nil {
				return err
			}
		}
	}
	return nil
}
