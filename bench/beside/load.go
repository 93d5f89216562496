package main

import (
	"fmt"
	"strings"
)

// load is what both programs get: pods with five volumes each, and those with a CSI volume (csi_load.go).
type load struct {
	fsGroup    bool
	emptyDir   string // "disk" or "memory"
	hostPath   string // a directory that is there
	csiVolumes int    // how many there are
}

// objects are what all pods refer to. `value` ends up in the file c/a of each pod.
func (l load) objects(value string) string {
	return `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "` + value + `", b: two, c: three}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {user: somebody, word: something}
` + csiObjects(l.csiVolumes)
}

const podTemplate = `---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, uid: %[1]s, labels: {app: bench}}
spec:
  serviceAccountName: default%[2]s
  containers:
  - name: main
    image: none
    volumeMounts:
    - {name: e, mountPath: /e}
    - {name: c, mountPath: /c}
    - {name: s, mountPath: /s}
    - {name: p, mountPath: /p}
    - {name: h, mountPath: /h}
  volumes:
  - {name: e, emptyDir: {%[3]s}}
  - {name: c, configMap: {name: settings}}
  - {name: s, secret: {secretName: password}}
  - name: p
    projected:
      sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3600}
      - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
  - {name: h, hostPath: {path: %[4]s, type: Directory}}
`

func (l load) pod(uid string) string {
	if strings.HasPrefix(uid, csiPodPrefix) {
		return csiPod(uid)
	}
	fsGroup, medium := "", ""
	if l.fsGroup {
		fsGroup = "\n  securityContext: {fsGroup: 2000}"
	}
	if l.emptyDir == "memory" {
		medium = "medium: Memory, sizeLimit: 1Mi"
	}
	return fmt.Sprintf(podTemplate, uid, fsGroup, medium, l.hostPath)
}

func (l load) manifest(uids []string) string {
	var text strings.Builder
	for _, uid := range uids {
		text.WriteString(l.pod(uid))
	}
	return text.String()
}

func uidsOf(prefix string, count int) []string {
	uids := make([]string, count)
	for i := range uids {
		uids[i] = fmt.Sprintf("%s-%05d", prefix, i)
	}
	return uids
}

// What of a pod's directory is the last thing to appear of each volume, in both programs: the link
// that an atomic writer renames into place, and the marker of an emptyDir. A hostPath leaves nothing.
var lastOfVolumes = []string{
	"volumes/kubernetes.io~configmap/c/..data",
	"volumes/kubernetes.io~secret/s/..data",
	"volumes/kubernetes.io~projected/p/..data",
	"plugins/kubernetes.io~empty-dir/e/ready",
}

var volumeDirectories = []string{
	"volumes/kubernetes.io~configmap/c",
	"volumes/kubernetes.io~secret/s",
	"volumes/kubernetes.io~projected/p",
	"volumes/kubernetes.io~empty-dir/e",
}

// mountedVolumes are those of volumeDirectories that must be mount points.
func (l load) mountedVolumes() []string {
	if l.emptyDir == "memory" {
		return volumeDirectories[1:]
	}
	return volumeDirectories[1:3]
}
