# Sourced by scripts/demo, which has started the daemon: its last act, the whole life of a claim of volumed's own class. A
# second volumed is the CSI driver of a pool, with deploy/kubernetes as it is; the daemon is to it what a kubelet and its
# sidecars are: it registers it, and calls it at its csi.sock. No Go is needed.
# Snapshots of a driver are nobody's without a cluster, so these two calls are made by hand (`volumectl csi`): the ones
# that external-snapshotter and external-provisioner make.

own_name=pool.volumed.io
own_pid=   # of the second volumed
own_disk=  # the loop device of its pool's disk
own_table=()

own_loops() { losetup --list --noheadings --output NAME,BACK-FILE | grep -F " $scratch/own/pool/" | cut -d' ' -f1 || true; }
own_loop_count() { own_loops | wc -l; }
own_files() { find "$scratch/own/pool" -mindepth 2 -type f | wc -l; }
own_mounts() { findmnt -rno TARGET | grep -cE "^$root/(pods|plugins)/.*/(mount|globalmount)$" || true; }
own_state() { ctl get drivers -o json | jq -r --arg name "$own_name" '.drivers[]? | select(.name == $name).state'; }
by_hand() { ctl csi "$own_name" "$1" --json -; }

# For the end of the demo, however it ends: after the mounts of the volumes.
end_own() {
  local loop
  [[ -z $own_pid ]] || { kill "$own_pid"; wait "$own_pid" || true; } 2>/dev/null
  own_pid=
  for loop in $(own_loops); do losetup --detach "$loop"; done
  ! mountpoint -q "$scratch/own/pool" || umount "$scratch/own/pool"
  [[ -z $own_disk ]] || losetup --detach "$own_disk"
  own_disk=
}

# ms_since START: of EPOCHREALTIME.
ms_since() {
  local now=$EPOCHREALTIME
  echo $(((${now/[.,]/} - ${1/[.,]/}) / 1000))
}

# call_ms RPC: how long its last call took that went well; with `failed` if there is none.
call_ms() {
  local took
  took=$(ctl csi "$own_name" --trace -o json |
    jq -r --arg rpc "/$1" '[.. | objects | select(.code? == "OK" and (.method | endswith($rpc))).took_us | tonumber] | last // empty')
  [[ -n $took ]] || fail "the driver was never asked for $1"
  echo $(((took + 500) / 1000))
}

# held WHAT BY MILLISECONDS SEEN: one line now, and one of the table at the end.
held() {
  local line
  [[ $3 =~ ^[0-9]+$ ]] || fail "$1: how long it took is not known"
  line=$(printf '%-14s%-30s%8s ms   %s' "$@")
  echo "ok: $line"
  own_table+=("$line")
}

start_own() {
  mkdir -p "$scratch/own/pool" "$root/plugins/$own_name"
  own_disk=$(new_disk "$scratch/own/disk.img" 16G)
  mkfs.xfs -q "$own_disk"
  mount "$own_disk" "$scratch/own/pool"
  cat >"$scratch/own/config.yaml" <<YAML
csi-only: true
csi-profile: central
csi-serve: $root/plugins/$own_name/csi.sock
csi-registry: $root/plugins_registry
csi-target-roots: [$root]
pool: {main: $scratch/own/pool}
root: $scratch/own/root
socket: $scratch/own/volumed.sock
socket-group: root
metrics-address: ""
node-name: demo-node
YAML
  cat "$scratch/own/config.yaml"
  "$bin/src/agent/volumed" run --config "$scratch/own/config.yaml" >>"$scratch/own.log" 2>&1 &
  own_pid=$!
  until_is "the driver, as \`volumectl get drivers\` shows it" ready own_state
}

# own_claim NAME SIZE [VOLUME]: a claim of the class, of this volume if one is named, and its pod.
own_claim() {
  cat <<YAML
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: volumed
  resources: {requests: {storage: $2}}${3:+
  volumeName: $3}
---
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  containers: [{name: main, image: busybox, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: $1}}]
YAML
}

# own_place CLAIM: where its pod has it.
own_place() {
  local pod
  pod=$(ctl get pods "$1-demo-node" -o json | jq -r '.pods[0].uid')
  echo "$root/pods/$pod/volumes/kubernetes.io~csi/$(ctl get pvc "$1" -o json | jq -r '.persistent_volume_claims[0].volume')/mount"
}

demo_own() {
  local place handle snapshot restored start sum
  say "the last act: a second volumed is the CSI driver $own_name, and this agent is its kubelet; nothing here needs Go"
  start_own
  ctl apply -f deploy/kubernetes/csidriver.yaml -f deploy/kubernetes/storageclass.yaml

  say "a claim of the class volumed, and its pod"
  own_claim books 1Gi >"$scratch/own/claim.yaml"
  cat "$scratch/own/claim.yaml"
  ctl apply -f "$scratch/own/claim.yaml"
  ctl wait books-demo-node --for ready --timeout 60
  ctl get pvc books
  place=$(own_place books)
  handle=$(by_hand ListVolumes <<<'{}' | jq -r '.entries[0].volume.volume_id')
  held "claim made" CreateVolume "$(call_ms CreateVolume)" "$(stat -c %s "$scratch/own/pool/volumes/$handle/image") bytes: $handle"
  held staged NodeStageVolume "$(call_ms NodeStageVolume)" "formatted and mounted: $(findmnt -no SOURCE,FSTYPE "$place" | xargs)"
  held published NodePublishVolume "$(call_ms NodePublishVolume)" "in the pod at .../${place##*/kubernetes.io~csi/}"
  start=$EPOCHREALTIME
  dd if=/dev/urandom of="$place/ledger" bs=1M count=64 conv=fsync status=none
  held written "dd in the pod's volume, fsync" "$(ms_since "$start")" "$(stat -c %s "$place/ledger") bytes"
  sum=$(sha256sum <"$place/ledger")

  say "a snapshot of it while it is mounted, and a new volume of that"
  snapshot=$(by_hand CreateSnapshot <<<"{\"name\": \"before-closing\", \"source_volume_id\": \"$handle\"}" |
    jq -r '.snapshot | select(.ready_to_use).snapshot_id')
  [[ -n $snapshot ]] || fail "the snapshot is not ready"
  held snapshotted CreateSnapshot "$(call_ms CreateSnapshot)" "$snapshot"
  echo "spoiled" >"$place/ledger"
  restore_own "$snapshot"
  restored=$(own_place books-restored)
  [[ $(sha256sum <"$restored/ledger") == "$sum" ]] || fail "the restored volume has another content"
  [[ $(cat "$place/ledger") == spoiled ]] || fail "the restore has changed its source"
  held restored "CreateVolume of the snapshot" "$(call_ms CreateVolume)" "all $(stat -c %s "$restored/ledger") bytes as they were; the source as it is"

  say "the claim asks for 2Gi, and the pod sees it"
  start=$EPOCHREALTIME
  own_claim books 2Gi | ctl apply -f -
  until_larger "$place" 1900 >/dev/null
  held grown "until the pod sees it" "$(ms_since "$start")" "$(mib_of "$place") MiB of filesystem, in use all the while"
  delete_own "$handle" "$snapshot"
}

# restore_own SNAPSHOT: the claim `books-restored` and its pod. Nobody else writes down what a provisioner would.
restore_own() {
  local handle
  handle=$(by_hand CreateVolume <<<"{\"name\": \"restored\", \"capacity_range\": {\"required_bytes\": $((1 << 30))},
    \"volume_capabilities\": [{\"mount\": {\"fs_type\": \"xfs\"}, \"access_mode\": {\"mode\": \"SINGLE_NODE_MULTI_WRITER\"}}],
    \"volume_content_source\": {\"snapshot\": {\"snapshot_id\": \"$1\"}}}" | jq -r .volume.volume_id)
  ctl apply -f - <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: restored, annotations: {pv.kubernetes.io/provisioned-by: $own_name}}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: volumed
  persistentVolumeReclaimPolicy: Delete
  csi: {driver: $own_name, volumeHandle: $handle, fsType: xfs}
YAML
  own_claim books-restored 1Gi restored | ctl apply -f -
  ctl wait books-restored-demo-node --for ready --timeout 60
}

# delete_own HANDLE SNAPSHOT: pods, claims and the snapshot; then nothing is left.
delete_own() {
  local start=$EPOCHREALTIME name
  say "pods, claims and snapshot are deleted"
  for name in books books-restored; do ctl delete pod "$name-demo-node"; done
  for name in books books-restored; do ctl wait "$name-demo-node" --for gone --timeout 30; done
  by_hand DeleteSnapshot <<<"{\"snapshot_id\": \"$2\"}" >/dev/null
  for name in books books-restored; do ctl delete pvc "$name"; done
  until_is "files in the driver's pool" 0 own_files
  held deleted "until the pool is empty" "$(ms_since "$start")" "unpublished, unstaged and deleted by the driver, with its snapshot"
  start=$EPOCHREALTIME
  until_is "loop devices of the pool" 0 own_loop_count
  expect "mounts of its volumes" "$(own_mounts)" 0
  [[ $(by_hand ListVolumes <<<'{}' | jq '.entries | length') == 0 ]] || fail "the driver still lists a volume"
  held "nothing left" "looked at" "$(ms_since "$start")" "no file, no loop device, no mount, no volume that the driver lists"
  ctl csi "$own_name" --trace
  stop_own
}

# The driver ends before the daemon, and takes its registration away.
stop_own() {
  end_own
  expect "the driver's registration" "$(find "$root/plugins_registry" -name "$own_name*" | wc -l)" 0
}

print_table() {
  printf '%-14s%-30s%8s      %s\n' STEP BY TIME SEEN
  printf '%s\n' "${own_table[@]}"
  echo "(of a call: how long the driver took for it; else as it was waited for)"
}
