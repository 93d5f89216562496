# Sourced by scripts/demo, which has started the daemon: volumes of a CSI driver of the field (tests/interop/pd), its
# controller and its node server as they are, over files and loop devices.

pd_name=pd.csi.storage.gke.io
pd_cloud= pd_node= pd_registrar=  # pids

# start_pd ROLE SOCKET [ARGUMENT...]: sets `started` to its pid.
start_pd() {
  local role=$1 socket=$2
  shift 2
  "$pd" --role "$role" --dir "$scratch/pd" --socket "$socket" --driver-name "$pd_name" --node demo-node "$@" \
    >>"$scratch/pd-$role.calls" 2>>"$scratch/pd-$role.log" &
  started=$!
}

# end_pd SIGNAL PID
end_pd() {
  kill "-$1" "$2"
  wait "$2" 2>/dev/null || true
}

# The devices of the driver's disks, which outlive its controller.
pd_devices() { losetup --list --noheadings --output NAME,BACK-FILE | grep -F " $scratch/pd/" | cut -d' ' -f1 || true; }
attached() { pd_devices | wc -l; }

# For the end of the demo, however it ends.
end_csi() {
  local pid device
  for pid in $pd_registrar $pd_node $pd_cloud; do end_pd TERM "$pid"; done  # the registrar takes its socket away
  pd_registrar= pd_node= pd_cloud=
  for device in $(pd_devices); do losetup --detach "$device"; done
}

driver_state() { ctl get drivers -o json | jq -r --arg name "$pd_name" '.drivers[]? | select(.name == $name).state'; }
answered() { grep -c "^$1 OK" "$scratch/pd-$2.calls" || true; }
# Of the claim, as it is measured; in MiB, for filesystems keep some for themselves.
measured_mib() {
  curl -fsS --noproxy '*' "http://$metrics/metrics" |
    awk -v name="kubelet_volume_stats_$1{" 'index($0, name) == 1 && /persistentvolumeclaim="orders"/ { print int($2 / 1048576) }'
}
is_measured_larger() { (($(measured_mib capacity_bytes || echo 0) > 1536)) && echo yes || echo no; }

demo_csi() {
  local pd started volume place call socket=$root/plugins/$pd_name/csi.sock
  say "a CSI driver of the field: its program (built once, from Go modules; on a new machine that takes minutes)"
  command -v go >/dev/null || { echo "skipped: needs go"; return 0; }
  stage peers scripts/peers get pd
  pd=$(scripts/peers path pd) || { echo "skipped: needs peer pd"; return 0; }

  say "the driver's controller and node server start, and it registers"
  mkdir -p "$(dirname "$socket")"
  start_pd cloud "$scratch/pd-cloud.sock" && pd_cloud=$started
  start_pd node "$socket" && pd_node=$started
  start_pd registrar "$socket" --registry "$root/plugins_registry" && pd_registrar=$started
  until_is "the driver" ready driver_state
  ctl describe driver "$pd_name"

  say "a claim gets a volume from it: made, attached, staged and published, with the pod's group"
  ctl apply -f examples/csi.yaml
  ctl wait shop --for ready --timeout 60
  ctl get pvc orders
  ctl get pv
  volume=$(ctl get pvc orders -o json | jq -r '.persistent_volume_claims[0].volume')
  place=$root/pods/0f3f1a52-6f6a-4b0e-8f63-0c1d1f6a3001/volumes/kubernetes.io~csi/$volume/mount
  findmnt -no SOURCE,FSTYPE,OPTIONS "$place"
  expect "its disk" "$(findmnt -no SOURCE "$place")" "$(pd_devices)"
  expect "its filesystem, by the class" "$(stat -fc %T "$place")" xfs
  expect "its group" "$(stat -c %g "$place")" 2000
  echo "order 1" >"$place/order"

  say "its node server is killed -9: the pod keeps its volume; what the claim asks for meanwhile waits until it is back"
  end_pd KILL "$pd_node" && pd_node=
  until_is "the driver" gone driver_state
  expect "the pod's file" "$(cat "$place/order")" "order 1"
  sed 's/storage: 1Gi/storage: 2Gi/' examples/csi.yaml | ctl apply -f - | { grep -v unchanged || true; }
  (($(mib_of "$place") < 1024)) || fail "the filesystem has grown without a driver: $(mib_of "$place") MiB"
  echo "ok: the filesystem is as it was: $(mib_of "$place") MiB"
  start_pd node "$socket" && pd_node=$started
  until_is "the driver" ready driver_state
  until_is "calls of its controller that made the disk larger" 1 answered ControllerExpandVolume cloud
  until_is "calls of its node server that made the filesystem larger" 1 answered NodeExpandVolume node
  until_larger "$place" 1536
  expect "the pod's file" "$(cat "$place/order")" "order 1"
  ctl explain shop

  say "it is measured by the driver"
  until_is "more than 1.5 GiB are measured" yes is_measured_larger
  curl -fsS --noproxy '*' "http://$metrics/metrics" | grep -E '^kubelet_volume_stats_.*"orders"'

  say "pod and claim go: unpublished, unstaged, detached and deleted, each once"
  ctl delete pod shop
  ctl wait shop --for gone --timeout 30
  until_is "disks that are attached" 0 attached
  ctl delete pvc orders
  until_is "volumes that the driver has deleted" 1 answered DeleteVolume cloud
  expect "its disks" "$(find "$scratch/pd/disks" -type f | wc -l)" 0
  for call in CreateVolume ControllerPublishVolume ControllerUnpublishVolume; do
    expect "calls of $call" "$(answered "$call" cloud)" 1
  done
  for call in NodeStageVolume NodePublishVolume NodeUnpublishVolume NodeUnstageVolume; do
    expect "calls of $call" "$(answered "$call" node)" 1
  done
  expect "disks that were detached in use" "$(grep -c ^DetachedInUse "$scratch/pd-cloud.calls" || true)" 0
  ctl csi "$pd_name" --trace
  end_csi
}
