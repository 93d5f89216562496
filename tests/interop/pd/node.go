package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/klog/v2"

	"sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/deviceutils"
	"sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/gce-cloud-provider/metadata"
	driver "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/gce-pd-csi-driver"
	mountmanager "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/mount-manager"
)

// links is the driver's own handling of devices, with the instance's folder for /dev/disk/by-id.
type links struct {
	deviceutils.DeviceUtils
	folder string
}

func (l *links) GetDiskByIdPaths(disk, _ string) []string {
	return []string{filepath.Join(l.folder, "google-"+disk)}
}

func (l *links) VerifyDevicePath(paths []string, disk string) (string, error) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no device of disk %s in %s: it is not attached", disk, l.folder)
}

// serveNode has no state: a node server that was killed and started again knows all that it knew.
func serveNode(set settings) {
	if len(set.nodes) != 1 {
		klog.Exit("a node server runs on one node")
	}
	name := set.nodes[0]
	metadata.SetName(name)
	metadata.SetZone(set.zone)
	metadata.SetMachineType(set.machineType)
	metadata.FakeProject = project
	mounter, err := mountmanager.NewSafeMounter(2, time.Minute)
	if err != nil {
		klog.Exit(err)
	}
	dir, err := filepath.Abs(set.dir)
	if err != nil {
		klog.Exit(err)
	}
	devices := &links{DeviceUtils: deviceutils.NewDeviceUtils(), folder: filepath.Join(dir, "nodes", name)}
	d := driver.GetGCEDriver()
	node := driver.NewNodeServer(d, mounter, devices, metadata.NewFakeService(), mountmanager.NewStatter(mounter),
		&driver.NodeServerArgs{EnableDeviceInUseCheck: true, DeviceInUseTimeout: 30 * time.Second, SysfsPath: "/sys", NodeName: name})
	serve(set, nil, node, d)
}
