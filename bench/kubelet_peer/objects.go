package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	storagev1defaults "k8s.io/kubernetes/pkg/apis/storage/v1"
)

// objectStore has the Secrets and ConfigMaps that pods name. A kubelet asks its watch-based managers,
// which are slower than this map.
type objectStore struct {
	mu         sync.RWMutex
	secrets    map[string]*v1.Secret
	configMaps map[string]*v1.ConfigMap
}

func newObjectStore() *objectStore {
	return &objectStore{secrets: map[string]*v1.Secret{}, configMaps: map[string]*v1.ConfigMap{}}
}

func (s *objectStore) secret(namespace, name string) (*v1.Secret, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if found := s.secrets[namespace+"/"+name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(v1.Resource("secrets"), name)
}

func (s *objectStore) configMap(namespace, name string) (*v1.ConfigMap, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if found := s.configMaps[namespace+"/"+name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(v1.Resource("configmaps"), name)
}

func (s *objectStore) put(object metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := object.GetNamespace() + "/" + object.GetName()
	switch object := object.(type) {
	case *v1.Secret:
		s.secrets[key] = object
	case *v1.ConfigMap:
		s.configMaps[key] = object
	}
}

// apply takes objects as a stream of JSON. Those before one that is refused stay.
func apply(objects *objectStore, pods *pods, manifest []byte) error {
	stream := json.NewDecoder(bytes.NewReader(manifest))
	for number := 0; ; number++ {
		var document json.RawMessage
		err := stream.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = applyDocument(objects, pods, document)
		}
		if err != nil {
			return fmt.Errorf("object %d: %w", number, err)
		}
	}
}

func applyDocument(objects *objectStore, pods *pods, document []byte) error {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(document, &kind); err != nil {
		return err
	}
	var object metav1.Object
	switch kind.Kind {
	case "Pod":
		object = &v1.Pod{}
	case "Secret":
		object = &v1.Secret{}
	case "ConfigMap":
		object = &v1.ConfigMap{}
	default:
		return applyStorage(pods.host.tracker, kind.Kind, document)
	}
	if err := json.Unmarshal(document, object); err != nil {
		return err
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	if pod, ok := object.(*v1.Pod); ok {
		if pod.UID == "" {
			return fmt.Errorf("pod %q has no uid", pod.Name)
		}
		corev1defaults.SetObjectDefaults_Pod(pod)
		pods.add(pod)
		return nil
	}
	if secret, ok := object.(*v1.Secret); ok {
		mergeStringData(secret)
	}
	objects.put(object)
	return nil
}

// What a kubelet reads of storage it asks the API server for: here, a fake clientset, without a network and
// without the client's limit of 50 requests a second.
func applyStorage(tracker clienttesting.ObjectTracker, kind string, document []byte) error {
	var object runtime.Object
	var resource schema.GroupVersionResource
	switch kind {
	case "PersistentVolume":
		object, resource = &v1.PersistentVolume{}, v1.SchemeGroupVersion.WithResource("persistentvolumes")
	case "PersistentVolumeClaim":
		object, resource = &v1.PersistentVolumeClaim{}, v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	case "CSIDriver":
		object, resource = &storagev1.CSIDriver{}, storagev1.SchemeGroupVersion.WithResource("csidrivers")
	default:
		return fmt.Errorf("kind %q is not known here", kind)
	}
	if err := json.Unmarshal(document, object); err != nil {
		return err
	}
	namespace := ""
	switch object := object.(type) {
	case *v1.PersistentVolume:
		corev1defaults.SetObjectDefaults_PersistentVolume(object)
	case *v1.PersistentVolumeClaim:
		corev1defaults.SetObjectDefaults_PersistentVolumeClaim(object)
		if object.Namespace == "" {
			object.Namespace = metav1.NamespaceDefault
		}
		namespace = object.Namespace
	case *storagev1.CSIDriver:
		storagev1defaults.SetObjectDefaults_CSIDriver(object)
	}
	err := tracker.Create(resource, object, namespace)
	if apierrors.IsAlreadyExists(err) {
		err = tracker.Update(resource, object, namespace)
	}
	return err
}

// What an API server does with stringData.
func mergeStringData(secret *v1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}
