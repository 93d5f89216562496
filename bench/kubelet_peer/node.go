package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/csi"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	"k8s.io/kubernetes/pkg/volume/hostpath"
	"k8s.io/kubernetes/pkg/volume/local"
	"k8s.io/kubernetes/pkg/volume/projected"
	"k8s.io/kubernetes/pkg/volume/secret"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
	"k8s.io/mount-utils"
)

// node is what a kubelet is to its volume plugins: directories, the real mounter, and where objects
// come from. The directories are those of pkg/kubelet/kubelet_getters.go.
type node struct {
	root      string
	name      types.NodeName
	client    clientset.Interface
	tracker   clienttesting.ObjectTracker // the objects of the client
	informers informers.SharedInformerFactory
	mounter   mount.Interface
	hostUtil  hostutil.HostUtils
	subpather subpath.Interface
	recorder  record.EventRecorder
	objects   *objectStore
	plugins   volume.VolumePluginMgr

	csiDrivers       storagelisters.CSIDriverLister
	csiDriversSynced cache.InformerSynced
}

var _ volume.KubeletVolumeHost = &node{}

func newNode(root, name string, client *fake.Clientset) (*node, error) {
	n := &node{root: root, name: types.NodeName(name), client: client, tracker: client.Tracker(),
		informers: informers.NewSharedInformerFactory(client, 0),
		mounter:   mount.New(""), hostUtil: hostutil.NewHostUtil(),
		recorder: logRecorder{}, objects: newObjectStore()}
	n.subpather = subpath.New(n.mounter)
	csiDrivers := n.informers.Storage().V1().CSIDrivers()
	n.csiDrivers, n.csiDriversSynced = csiDrivers.Lister(), csiDrivers.Informer().HasSynced
	return n, n.plugins.InitPlugins(volumePlugins(), nil, n)
}

func volumePlugins() []volume.VolumePlugin {
	var all []volume.VolumePlugin
	for _, some := range [][]volume.VolumePlugin{
		emptydir.ProbeVolumePlugins(), secret.ProbeVolumePlugins(), configmap.ProbeVolumePlugins(),
		projected.ProbeVolumePlugins(), downwardapi.ProbeVolumePlugins(), local.ProbeVolumePlugins(),
		csi.ProbeVolumePlugins(), hostpath.ProbeVolumePlugins(volume.VolumeConfig{}),
	} {
		all = append(all, some...)
	}
	return all
}

func nodeObject(name string) *v1.Node {
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "node"}}
	object.Status.Allocatable = allocatable()
	return object
}

func allocatable() v1.ResourceList {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		panic(err) // sysinfo(2) cannot fail with a pointer that is right
	}
	memory := int64(info.Totalram) * int64(info.Unit)
	return v1.ResourceList{
		v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
		v1.ResourceCPU:    *resource.NewQuantity(int64(goruntime.NumCPU()), resource.DecimalSI),
	}
}

func (n *node) GetPodsDir() string              { return filepath.Join(n.root, "pods") }
func (n *node) podDir(uid types.UID) string     { return filepath.Join(n.GetPodsDir(), string(uid)) }
func (n *node) GetPluginDir(name string) string { return filepath.Join(n.root, "plugins", name) }
func (n *node) GetVolumeDevicePluginDir(name string) string {
	return filepath.Join(n.GetPluginDir(name), "volumeDevices")
}
func (n *node) GetPodVolumeDir(uid types.UID, plugin, volumeName string) string {
	return filepath.Join(n.podDir(uid), "volumes", plugin, volumeName)
}
func (n *node) GetPodVolumeDeviceDir(uid types.UID, plugin string) string {
	return filepath.Join(n.podDir(uid), "volumeDevices", plugin)
}
func (n *node) GetPodPluginDir(uid types.UID, plugin string) string {
	return filepath.Join(n.podDir(uid), "plugins", plugin)
}

func (n *node) GetNodeName() types.NodeName                         { return n.name }
func (n *node) GetKubeClient() clientset.Interface                  { return n.client }
func (n *node) GetMounter() mount.Interface                         { return n.mounter }
func (n *node) GetHostUtil() hostutil.HostUtils                     { return n.hostUtil }
func (n *node) GetSubpather() subpath.Interface                     { return n.subpather }
func (n *node) GetEventRecorder() record.EventRecorder              { return n.recorder }
func (n *node) GetInformerFactory() informers.SharedInformerFactory { return n.informers }
func (n *node) GetNodeAllocatable() (v1.ResourceList, error)        { return allocatable(), nil }
func (n *node) GetNodeLabels() (map[string]string, error) {
	return map[string]string{v1.LabelHostname: string(n.name)}, nil
}
func (n *node) GetAttachedVolumesFromNodeStatus() (map[v1.UniqueVolumeName]string, error) {
	return map[v1.UniqueVolumeName]string{}, nil
}

// The plugins secret, configMap, ... make their tmpfs or directory by the emptyDir plugin.
func (n *node) wrapped(volumeName string, spec *volume.Spec) (volume.VolumePlugin, error) {
	if spec.Volume != nil {
		spec.Volume.Name = "wrapped_" + volumeName
	}
	return n.plugins.FindPluginBySpec(spec)
}
func (n *node) NewWrapperMounter(volumeName string, spec volume.Spec, pod *v1.Pod) (volume.Mounter, error) {
	plugin, err := n.wrapped(volumeName, &spec)
	if err != nil {
		return nil, err
	}
	return plugin.NewMounter(&spec, pod)
}
func (n *node) NewWrapperUnmounter(volumeName string, spec volume.Spec, uid types.UID) (volume.Unmounter, error) {
	plugin, err := n.wrapped(volumeName, &spec)
	if err != nil {
		return nil, err
	}
	return plugin.NewUnmounter(spec.Name(), uid)
}

func (n *node) GetSecretFunc() func(namespace, name string) (*v1.Secret, error) {
	return n.objects.secret
}
func (n *node) GetConfigMapFunc() func(namespace, name string) (*v1.ConfigMap, error) {
	return n.objects.configMap
}

// An API server signs tokens, not a kubelet, so this one costs the peer nothing. It has the length of
// a real one.
func (n *node) GetServiceAccountTokenFunc() func(string, string, *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return func(namespace, account string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
		answer := request.DeepCopy()
		answer.Status.Token = fmt.Sprintf("%-900s", namespace+"."+account+".not-signed")
		answer.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
		return answer, nil
	}
}
func (n *node) DeleteServiceAccountTokenFunc() func(types.UID) { return func(types.UID) {} }

// Of CSIDrivers a kubelet keeps what its informer has told.
func (n *node) CSIDriverLister() storagelisters.CSIDriverLister { return n.csiDrivers }
func (n *node) CSIDriversSynced() cache.InformerSynced          { return n.csiDriversSynced }
func (n *node) WaitForCacheSync() error {
	if !cache.WaitForCacheSync(context.Background().Done(), n.csiDriversSynced) {
		return errors.New("the informer of CSIDrivers has no list")
	}
	return nil
}

// What only an API server has. No plugin of this program asks for it.
var errNoAPIServer = errors.New("kubelet_peer has no API server")

func (n *node) SetKubeletError(error)                              {}
func (n *node) GetTrustAnchorsByName(string, bool) ([]byte, error) { return nil, errNoAPIServer }
func (n *node) GetTrustAnchorsBySigner(string, *metav1.LabelSelector, bool) ([]byte, error) {
	return nil, errNoAPIServer
}
func (n *node) GetPodCertificateCredentialBundle(context.Context, string, string, string, string, int) ([]byte, []byte, error) {
	return nil, nil, errNoAPIServer
}

// volumesOnDisk lists <pod>/volumes/<plugin>/<volume>, as getPodVolumePathListFromDisk does.
func (n *node) volumesOnDisk(uid types.UID) ([]string, error) {
	return filepath.Glob(filepath.Join(n.podDir(uid), "volumes", "*", "*"))
}
