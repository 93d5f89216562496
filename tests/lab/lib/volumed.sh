# volumed as a user installs it, under its shipped unit; sourced after lab.sh.
#   install_volumed               what /lab/product has, the group, the directories; not started
#   configure LINE...             lines of /etc/volumed/config.yaml
#   start_volumed
#   property NAME                 of the unit
#   wait_ready POD, wait_gone POD
#   explains POD TEXT             whether `explain` has it
#   local_volume NAME DEVICE FSTYPE [MI]   manifests: a PersistentVolume of that disk and its claim
#   pod NAME UID CLAIM[:ro]...             a manifest: one pod that has the claims, mounted at /CLAIM
#   manifest FILE                     stdin becomes a manifest of that name, by one rename
#   next_try POD                      seconds until volumed tries by itself again; 0: it tries now
#   attempts POD                      how often its first problem was met
#   iscsi_volume NAME LUN SECRET [MODE [PORTAL]]   the same of a LUN of the lab's target, with CHAP;
#                                     Block; by one more portal
#   iscsi_secret NAME USER PASSWORD   the secret of such a volume
#   block_pod NAME UID CLAIM          a pod that has the claim's device
#   volume_path UID VOLUME            where a pod's local volume is
unset VOLUMED_SOCKET
volumed_root=/var/lib/volumed

install_volumed() {
  cp -a /lab/product/. /
  must systemd-sysusers
  must systemd-tmpfiles --create
  mkdir -p /etc/volumed
  : >/etc/volumed/config.yaml
  must systemctl daemon-reload
}
configure() { printf '%s\n' "$@" >/etc/volumed/config.yaml; }
start_volumed() { systemctl start volumed || fail "start: $(systemctl status --no-pager volumed; journalctl --no-pager -u volumed -n 30)"; }
property() { systemctl show -p "$1" --value volumed; }
# A manifest that was just written is not read yet: a pod that nobody knows would end the wait for it.
wait_ready() { volumectl wait "$1" --for create --timeout "$((${2:-40} * lab_patience))" >/dev/null && volumectl wait "$1" --for ready --timeout "$((${2:-40} * lab_patience))" || fail "$1 is not ready: $(volumectl explain "$1")"; }
wait_gone() { volumectl wait "$1" --for gone --timeout "$((${2:-40} * lab_patience))" || fail "$1 does not go: $(volumectl explain "$1")"; }
manifest() { cat >/etc/volumed/new && mv /etc/volumed/new "/etc/volumed/manifests/$1.yaml"; }
next_try() { volumectl explain "$1" | awk '/^ *next try:/ { print ($3 == "in" ? $4 + 0 : 0); exit }'; }
attempts() { volumectl explain "$1" | sed -n 's/.*, \([0-9]*\) attempts$/\1/p' | head -n 1; }
explains() { volumectl explain "$1" | grep -qF -- "$2"; }
nothing_mounted() { [[ -z $(pod_mounts) ]]; }
# pod_mounts: what PID 1 sees below the agent's pods and plugins.
pod_mounts() { awk -v root=$volumed_root/ 'index($5, root "pods/") || index($5, root "plugins/") { print $1, $5 }' /proc/1/mountinfo | sort; }
volume_path() { echo "$volumed_root/pods/$1/volumes/kubernetes.io~local-volume/$2"; }

local_volume() {
  cat <<YAML
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1}
spec:
  capacity: {storage: ${4:-64}Mi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  local: {path: $2, fsType: $3}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchFields: [{key: metadata.name, operator: In, values: [labvm]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec:
  accessModes: [ReadWriteOnce]
  volumeName: $1
  resources: {requests: {storage: $((${4:-64} / 2))Mi}}
YAML
}

pod() {
  local name=$1 uid=$2 claim reference
  shift 2
  printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, uid: %s}\nspec:\n' "$name" "$uid"
  printf '  containers:\n    - {name: main, image: busybox, volumeMounts: ['
  for claim in "${@%:ro}"; do printf '{name: %s, mountPath: /%s}, ' "$claim" "$claim"; done
  printf ']}\n  volumes:\n'
  for claim in "$@"; do
    reference="claimName: ${claim%:ro}"
    [[ $claim != *:ro ]] || reference+=", readOnly: true"
    printf '    - {name: %s, persistentVolumeClaim: {%s}}\n' "${claim%:ro}" "$reference"
  done
}

iscsi_volume() {
  cat <<YAML
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1}
spec:
  capacity: {storage: 64Mi}
  accessModes: [ReadWriteOnce]
  volumeMode: ${4:-Filesystem}
  persistentVolumeReclaimPolicy: Retain
  iscsi:
    targetPortal: $server_address
    portals: [${5:-}]
    iqn: $iscsi_target
    lun: $2
    fsType: ext4
    chapAuthSession: true
    secretRef: {name: $3, namespace: default}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec:
  accessModes: [ReadWriteOnce]
  volumeMode: ${4:-Filesystem}
  volumeName: $1
  resources: {requests: {storage: 32Mi}}
YAML
}
iscsi_secret() {
  cat <<YAML
---
apiVersion: v1
kind: Secret
metadata: {name: $1}
type: kubernetes.io/iscsi-chap
stringData:
  node.session.auth.username: $2
  node.session.auth.password: $3
YAML
}

block_pod() {
  printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, uid: %s}\nspec:\n' "$1" "$2"
  printf '  containers:\n    - {name: main, image: busybox, volumeDevices: [{name: data, devicePath: /dev/xvda}]}\n'
  printf '  volumes:\n    - {name: data, persistentVolumeClaim: {claimName: %s}}\n' "$3"
}
