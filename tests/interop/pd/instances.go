package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/GoogleCloudPlatform/k8s-cloud-provider/pkg/cloud/meta"
	compute "google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	gce "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/gce-cloud-provider/compute"
	"sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/parameters"
)

// openCloud reads the state and makes the folder agree with it.
func openCloud(dir, zone string, instances []string) (*cloud, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{"disks", "snapshots", "nodes"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	// As the kernel names the images of loop devices.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	base, err := gce.CreateFakeCloudProvider(project, zone, nil)
	if err != nil {
		return nil, err
	}
	known, err := readState(filepath.Join(dir, "state.json"))
	if err != nil {
		return nil, err
	}
	c := &cloud{FakeCloudProvider: base, dir: dir, zone: zone, known: known}
	for _, instance := range instances {
		if c.known.Attached[instance] == nil {
			c.known.Attached[instance] = []*compute.AttachedDisk{}
		}
		if err := os.MkdirAll(filepath.Join(dir, "nodes", instance), 0o700); err != nil {
			return nil, err
		}
	}
	return c, c.align()
}

// align takes away what the state does not know and makes what it knows: after a kill, and after a restart of the
// machine, which leaves no loop device.
func (c *cloud) align() error {
	loops, err := loopsBelow(c.dir)
	if err != nil {
		return err
	}
	for instance, disks := range c.known.Attached {
		for _, disk := range disks {
			link := c.link(instance, disk.DeviceName)
			image := c.image(c.zone + "/" + disk.DeviceName)
			if device, err := os.Readlink(link); err == nil && loops[device] == image {
				delete(loops, device)
				continue
			}
			if err := c.plug(link, image, disk.Mode == "READ_ONLY"); err != nil {
				return err
			}
		}
	}
	for device := range loops {
		if err := detachLoop(device); err != nil {
			return err
		}
	}
	if err := c.sweep(); err != nil {
		return err
	}
	for id, disk := range c.known.Disks {
		if err := c.grow(id, disk.SizeGb); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes links and files of calls that were not answered.
func (c *cloud) sweep() error {
	wanted := map[string]bool{}
	for id := range c.known.Disks {
		wanted[c.image(id)] = true
	}
	for name := range c.known.Snapshots {
		wanted[c.copyOf(name)] = true
	}
	for instance, disks := range c.known.Attached {
		for _, disk := range disks {
			wanted[c.link(instance, disk.DeviceName)] = true
		}
	}
	for _, pattern := range []string{"disks/*/*", "snapshots/*", "nodes/*/*"} {
		files, err := filepath.Glob(filepath.Join(c.dir, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			if wanted[file] {
				continue
			}
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cloud) plug(link, image string, readOnly bool) error {
	device, err := attachLoop(image, readOnly)
	if err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(device, link)
}

func (c *cloud) selfLink(instance string) string {
	return fmt.Sprintf("%sprojects/%s/zones/%s/instances/%s", gce.BasePath, project, c.zone, instance)
}

// users are the links of the instances that have the disk.
func (c *cloud) users(disk string) []string {
	var links []string
	for instance, disks := range c.known.Attached {
		if slices.ContainsFunc(disks, func(have *compute.AttachedDisk) bool { return have.DeviceName == disk }) {
			links = append(links, c.selfLink(instance))
		}
	}
	return links
}

func (c *cloud) instance(name string) (*compute.Instance, error) {
	disks, ok := c.known.Attached[name]
	if !ok {
		return nil, notFound("instance", name)
	}
	return &compute.Instance{Name: name, Zone: c.zone, Disks: slices.Clone(disks),
		SelfLink: c.selfLink(name)}, nil
}

func (c *cloud) GetInstanceOrError(_ context.Context, _, zone, name string) (*compute.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if zone != c.zone {
		return nil, notFound("instance", zone+"/"+name)
	}
	return c.instance(name)
}

func (c *cloud) ListInstances(context.Context, []googleapi.Field) ([]*compute.Instance, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := []*compute.Instance{}
	for name := range c.known.Attached {
		instance, err := c.instance(name)
		if err != nil {
			return nil, "", err
		}
		found = append(found, instance)
	}
	return found, "", nil
}

// AttachDisk refuses what the cloud refuses: a disk of another zone, and a second instance beside one that writes.
func (c *cloud) AttachDisk(_ context.Context, project string, key *meta.Key, mode, kind, zone, instance string, _ bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	disk, ok := c.known.Disks[diskID(key)]
	if !ok {
		return notFound("disk", diskID(key))
	}
	if key.Zone != zone || zone != c.zone {
		return apiError(http.StatusBadRequest, "invalid", "disk %s is not in the zone %s of instance %s", diskID(key), zone, instance)
	}
	if _, ok := c.known.Attached[instance]; !ok {
		return notFound("instance", instance)
	}
	for other, disks := range c.known.Attached {
		for _, have := range disks {
			if have.DeviceName == key.Name && !disk.MultiWriter && (mode != "READ_ONLY" || have.Mode != "READ_ONLY") {
				return apiError(http.StatusBadRequest, "resourceInUseByAnotherResource", "disk %s is used by instance %s", diskID(key), other)
			}
		}
	}
	if err := c.plug(c.link(instance, key.Name), c.image(diskID(key)), mode == "READ_ONLY"); err != nil {
		return err
	}
	c.known.Attached[instance] = append(c.known.Attached[instance], &compute.AttachedDisk{
		DeviceName: key.Name, Mode: mode, Type: kind, Source: c.GetDiskSourceURI(project, key)})
	c.note()
	return nil
}

func (c *cloud) DetachDisk(_ context.Context, _, disk, _, instance string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Attached[instance] = slices.DeleteFunc(c.known.Attached[instance],
		func(have *compute.AttachedDisk) bool { return have.DeviceName == disk })
	c.note()
	link := c.link(instance, disk)
	device, err := os.Readlink(link)
	if err != nil {
		return err
	}
	if err := os.Remove(link); err != nil {
		return err
	}
	return detachLoop(device)
}

func (c *cloud) ListSnapshots(_ context.Context, filter string) ([]*compute.Snapshot, string, error) {
	source, err := regexp.Compile(strings.TrimPrefix(filter, "sourceDisk eq "))
	if err != nil {
		return nil, "", apiError(http.StatusBadRequest, "invalid", "filter %q: %v", filter, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := []*compute.Snapshot{}
	for _, snapshot := range c.known.Snapshots {
		if source.MatchString(snapshot.SourceDisk) {
			copied := *snapshot
			found = append(found, &copied)
		}
	}
	return found, "", nil
}

// GetSnapshot finds a snapshot ready that was made before, and whose making was told as going on.
func (c *cloud) GetSnapshot(_ context.Context, _, name string) (*compute.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	snapshot, ok := c.known.Snapshots[name]
	if !ok {
		return nil, notFound("snapshot", name)
	}
	copied := *snapshot
	copied.Status = "READY"
	return &copied, nil
}

// CreateSnapshot copies what the disk holds, without what a filesystem on it has not written yet.
func (c *cloud) CreateSnapshot(_ context.Context, project string, key *meta.Key, name string, params parameters.SnapshotParameters) (*compute.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	disk, ok := c.known.Disks[diskID(key)]
	if !ok {
		return nil, notFound("disk", diskID(key))
	}
	if strings.Contains(name, "/") {
		return nil, apiError(http.StatusBadRequest, "invalid", "%q is no name of a snapshot", name)
	}
	if err := copyImage(c.image(diskID(key)), c.copyOf(name)); err != nil {
		return nil, err
	}
	made := compute.Snapshot{Name: name, DiskSizeGb: disk.SizeGb, Status: "UPLOADING", Labels: params.Labels,
		CreationTimestamp: time.Now().Format(time.RFC3339Nano), StorageLocations: params.StorageLocations,
		SelfLink:   fmt.Sprintf("%sprojects/%s/global/snapshots/%s", gce.BasePath, project, name),
		SourceDisk: c.GetDiskSourceURI(project, key)}
	c.known.Snapshots[name] = &made
	c.note()
	copied := made
	return &copied, nil
}

func (c *cloud) DeleteSnapshot(_ context.Context, _, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known.Snapshots[name]; !ok {
		return nil
	}
	delete(c.known.Snapshots, name)
	c.note()
	return os.Remove(c.copyOf(name))
}

func (c *cloud) CreateImage(context.Context, string, *meta.Key, string, parameters.SnapshotParameters) (*compute.Image, error) {
	return nil, apiError(http.StatusNotImplemented, "notImplemented", "snapshots are copies of disks here, no images")
}
