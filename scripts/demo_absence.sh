# Sourced by scripts/demo, which has started the daemon: an absence is not a deletion.

# stop_daemon: as systemd does; returns once it has ended.
stop_daemon() {
  kill "$daemon"
  wait "$daemon" 2>/dev/null || true
  daemon=
}

# wait_for_source TEXT: until `sources` has it.
wait_for_source() {
  for _ in $(seq 200); do
    ctl sources | grep -qF "$1" && return 0
    sleep 0.05
  done
  fail "sources does not say '$1': $(ctl sources)"
}

# The manifest has no uid, as people write them: the agent gives one and must know it again.
write_ledger() {
  cat >"$scratch/manifests/ledger.yaml" <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: ledger}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  local: {path: $scratch/ledger}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [demo-node]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ledger}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
  volumeName: ledger
---
apiVersion: v1
kind: Pod
metadata: {name: ledger}
spec:
  containers:
    - name: main
      image: busybox
      volumeMounts: [{name: data, mountPath: /data}, {name: claim, mountPath: /ledger}]
  volumes:
    - {name: data, emptyDir: {}}
    - {name: claim, persistentVolumeClaim: {claimName: ledger}}
YAML
}

# expect_ledger WHEN: the pod is the same one, and both of its files are there, through its own paths.
expect_ledger() {
  ctl wait "$ledger" --for ready --timeout 30 >/dev/null || fail "$ledger is not ready $1"
  expect "the pod's uid, $1" "$(ctl get pods "$ledger" -o json | jq -r '.pods[0].uid')" "$ledger_uid"
  expect "its emptyDir, $1" "$(cat "$ledger_dir/kubernetes.io~empty-dir/data/note")" "nobody has a copy"
  expect "its claim, $1" "$(cat "$ledger_dir/kubernetes.io~local-volume/ledger/note")" "nor of this"
}

demo_absence() {
  local source=manifests:$scratch/manifests ledger=ledger-demo-node ledger_uid ledger_dir goes
  mkdir -p "$scratch/ledger"
  say "a pod of the manifest directory, with data in an emptyDir and in a claim"
  write_ledger
  ctl wait "$ledger" --for create --timeout 30
  ctl wait "$ledger" --for ready --timeout 30
  ledger_uid=$(ctl get pods "$ledger" -o json | jq -r '.pods[0].uid')
  ledger_dir=$root/pods/$ledger_uid/volumes
  echo "nobody has a copy" >"$ledger_dir/kubernetes.io~empty-dir/data/note"
  echo "nor of this" >"$ledger_dir/kubernetes.io~local-volume/ledger/note"

  say "the manifest directory is emptied, and the agent started again: nothing goes"
  stop_daemon
  rm "$scratch/manifests/ledger.yaml"
  start_daemon
  wait_for_source "INCOMPLETE: the directory held no manifest at all when it was listed"
  ctl sources
  expect_ledger "with an empty directory"
  ctl explain "$ledger"

  say "the file comes back: the source is in order, and nothing has moved"
  write_ledger
  for _ in $(seq 200); do
    [[ $(ctl sources) == *INCOMPLETE* ]] || break
    sleep 0.05
  done
  expect "sources that are INCOMPLETE" "$(ctl sources | grep -c INCOMPLETE || true)" 0
  expect_ledger "with its file again"

  say "emptied once more, and this time meant: volumectl source accept"
  stop_daemon
  rm "$scratch/manifests/ledger.yaml"
  start_daemon
  wait_for_source "INCOMPLETE: the directory held no manifest at all when it was listed"
  ctl source accept "$source" --dry-run
  goes=$(ctl source accept "$source" --dry-run)
  [[ $goes == *"$ledger"* ]] || fail "the dry run does not name $ledger: $goes"
  if ctl source accept "$source"; then fail "accepted without --yes, with volumes mounted"; fi
  expect_ledger "after a dry run and a refusal"
  ctl source accept "$source" --yes
  ctl wait "$ledger" --for gone --timeout 30
  expect "directories of pods" "$(find "$root/pods" -mindepth 1 | wc -l)" 0
  expect "the claim's data, which no absence ends" "$(cat "$scratch/ledger/note")" "nor of this"
  ctl get pvc
}
