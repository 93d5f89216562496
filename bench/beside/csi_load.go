package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const csiDriverObject = `---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: ` + csiDriverName + `}
spec: {attachRequired: false, podInfoOnMount: false, fsGroupPolicy: None}
`

// A claim and its volume, bound as a cluster has them before a pod comes to a node.
const csiStorageTemplate = `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s, uid: volume-%[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: default, name: %[1]s, uid: claim-%[1]s}
  csi: {driver: ` + csiDriverName + `, volumeHandle: %[1]s}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s, namespace: default, uid: claim-%[1]s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: %[1]s
  resources: {requests: {storage: 1Gi}}
status: {phase: Bound, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}}
`

const csiPodTemplate = `---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, uid: %[1]s, labels: {app: bench}}
spec:
  containers:
  - {name: main, image: none, volumeMounts: [{name: data, mountPath: /data}]}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: %[2]s}}
`

const csiPodPrefix = "csi-"

func csiVolumesOf(count int) []string { return uidsOf("csi", count) }

// The volume of a pod has the pod's number.
func csiVolumeOf(uid string) string { return "csi" + uid[strings.LastIndex(uid, "-"):] }

func csiPod(uid string) string { return fmt.Sprintf(csiPodTemplate, uid, csiVolumeOf(uid)) }

// csiObjects are the storage of so many pods.
func csiObjects(count int) string {
	if count == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString(csiDriverObject)
	for _, volume := range csiVolumesOf(count) {
		fmt.Fprintf(&text, csiStorageTemplate, volume)
	}
	return text.String()
}

// makeCSIVolumes makes the storage itself: a directory for each volume, with a file that has its name.
func makeCSIVolumes(directory string, count int) error {
	for _, volume := range csiVolumesOf(count) {
		if err := os.MkdirAll(filepath.Join(directory, volume), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(directory, volume, "name"), []byte(volume), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// checkCSIPods says what of the pods' volumes is not as it should be: each a mount of its own, of the right volume.
func checkCSIPods(root string, uids []string) error {
	ids, err := mountIDs(filepath.Join(root, "pods"))
	if err != nil {
		return err
	}
	for _, uid := range uids {
		volume := csiVolumeOf(uid)
		mounted := filepath.Join(root, "pods", uid, "volumes/kubernetes.io~csi", volume, "mount")
		if ids[mounted] == "" {
			return fmt.Errorf("%s is no mount point", mounted)
		}
		name, err := os.ReadFile(filepath.Join(mounted, "name"))
		if err != nil {
			return err
		}
		if string(name) != volume {
			return fmt.Errorf("%s is of volume %q", mounted, name)
		}
	}
	return nil
}
