# Pools of the node, claims of them, and pods that write to these; sourced after volumed.sh and grow.sh.
#   apply                          stdin, by volumectl
#   pool_class NAME POOL [KEY VALUE]...    a manifest: a class of that pool, with more parameters
#   pool_claim NAME CLASS MI [KIND SOURCE] a manifest: a claim; of a VolumeSnapshot or PersistentVolumeClaim
#   pool_snapshot NAME CLAIM       manifests: a VolumeSnapshot, and the class of all of them
#   pool_pod NAME                  a manifest: the pod NAME, which has the claim NAME
#   pool_place NAME                where that pod has it
#   pool_volume CLAIM              its PersistentVolume
#   pool_field NAME FIELD          of that pod's mount, as /proc/1/mountinfo counts them
#   snapshot_ready NAME
#   pool_gone NAME...              those pods go
#   pool_kill [WHO]                kill -9 of the agent (main), or with its workers (all), until there is another one
# The words of grow.sh that take a volume's name take that of a claim with a pod.
modprobe -a loop

apply() { volumectl apply -f - >/dev/null || fail "the objects are not applied"; }

pool_class() {
  local name=$1 pool=$2
  shift 2
  printf -- '---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: %s}\n' "$name"
  printf 'provisioner: pool.volumed.io\nreclaimPolicy: Delete\nallowVolumeExpansion: true\n'
  printf 'volumeBindingMode: WaitForFirstConsumer\nparameters:\n  pool: %s\n' "$pool"
  while (($#)); do
    printf '  %s: "%s"\n' "$1" "$2"
    shift 2
  done
}

pool_claim() {
  local group=
  printf -- '---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s}\nspec:\n' "$1"
  printf '  accessModes: [ReadWriteOnce]\n  storageClassName: %s\n' "$2"
  printf '  resources: {requests: {storage: %sMi}}\n' "$3"
  [[ ${4:-} != VolumeSnapshot ]] || group='apiGroup: snapshot.storage.k8s.io, '
  [[ -z ${4:-} ]] || printf '  dataSource: {%skind: %s, name: %s}\n' "$group" "$4" "$5"
}

pool_snapshot() {
  cat <<YAML
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata:
  name: pool
  annotations: {snapshot.storage.kubernetes.io/is-default-class: "true"}
driver: pool.volumed.io
deletionPolicy: Delete
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: $1}
spec: {source: {persistentVolumeClaimName: $2}}
YAML
}

pool_uid() { printf '77777777-0000-4000-8000-%012d' "$(cksum <<<"$1" | cut -d' ' -f1)"; }
pool_pod() { pod "$1" "$(pool_uid "$1")" "$1"; }
# Asked once of each claim.
pool_volume() {
  local known=$lab_state/volume-$1 volume
  if [[ ! -e $known ]]; then
    volume=$(volumectl get pvc "$1" -o json | jq -er '.persistent_volume_claims[0].volume | select(. != "")') || return 1
    echo "$volume" >"$known"
  fi
  cat "$known"
}
pool_place() { echo "$volumed_root/pods/$(pool_uid "$1")/volumes/volumed.io~pool/$(pool_volume "$1")"; }
pool_field() { awk -v place="$(pool_place "$1")" -v field="$2" '$5 == place { print $field; exit }' /proc/1/mountinfo; }
# That of grow.sh is a local volume's.
grow_place() { pool_place "$1"; }

snapshot_ready() { volumectl get volumesnapshots "$1" | grep -qw true; }

pool_gone() {
  local name
  for name in "$@"; do must volumectl delete pod "$name"; done
  for name in "$@"; do wait_gone "$name" 60; done
}

agent_is_another() { [[ $(property MainPID) != "$1" && $(property SubState) == running ]] && volumectl status; }
pool_kill() {
  local agent
  agent=$(property MainPID)
  must systemctl kill --signal=KILL --kill-who="${1:-main}" volumed
  must wait_until 60 agent_is_another "$agent"
}
