// Prints src/kube/known_fields.inc: every field name of the kinds that volumed reads, as the Go types of
// Kubernetes have them. A manifest's field that is not in it is a slip of the pen.
//
//	cd scripts/known_fields && go run . >../../src/kube/known_fields.inc
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	snapshot "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
)

const module = "k8s.io/api@v0.36.3"
const snapshotModule = "external-snapshotter/client/v8@v8.6.0"

// Types with a JSON form of their own: nothing below them is a field.
var leaves = map[string]bool{"Quantity": true, "Time": true, "MicroTime": true, "Duration": true, "IntOrString": true, "RawExtension": true, "FieldsV1": true}

type printer struct{ lines map[string]string }

// elem is the struct type that a field holds: itself, by pointer, in a list or in a map.
func elem(t reflect.Type) (s reflect.Type, isMap bool) {
	for {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			t = t.Elem()
		case reflect.Map:
			t, isMap = t.Elem(), true
		default:
			return t, isMap
		}
	}
}

func (p *printer) fields(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && (f.Anonymous || strings.Contains(options, "inline")) {
			names = append(names, p.fields(f.Type)...)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		s, isMap := elem(f.Type)
		if s.Kind() == reflect.Struct && !leaves[s.Name()] {
			p.add(s)
			if isMap {
				name += ":*" + s.Name()
			} else {
				name += ":" + s.Name()
			}
		}
		names = append(names, name)
	}
	return names
}

func (p *printer) add(t reflect.Type) {
	if _, known := p.lines[t.Name()]; known {
		return
	}
	p.lines[t.Name()] = "" // types may contain themselves
	names := p.fields(t)
	sort.Strings(names)
	p.lines[t.Name()] = t.Name() + " " + strings.Join(names, " ")
}

func main() {
	p := printer{lines: map[string]string{}}
	for _, object := range []any{core.Pod{}, core.Secret{}, core.ConfigMap{}, core.Node{}, core.PersistentVolume{},
		core.PersistentVolumeClaim{}, storage.StorageClass{}, storage.CSIDriver{}, storage.CSINode{},
		storage.VolumeAttachment{}, snapshot.VolumeSnapshot{}, snapshot.VolumeSnapshotContent{},
		snapshot.VolumeSnapshotClass{}} {
		p.add(reflect.TypeOf(object))
	}
	var types []string
	for name := range p.lines {
		types = append(types, name)
	}
	sort.Strings(types)
	fmt.Printf("// The fields of each type by name, with the type of those that are objects, lists of objects, or (*) maps\n")
	fmt.Printf("// of objects. Made by scripts/known_fields from the types of %s and\n", module)
	fmt.Printf("// %s; not edited by hand.\n", snapshotModule)
	for _, name := range types {
		fmt.Printf("%q\n", p.lines[name]+"\n")
	}
}
