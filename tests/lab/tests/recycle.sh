# hostPath volumes that are recycled under the shipped unit: by effects; and by a container of runc,
# which the unit's sandbox forbids until the drop-in of docs/OPERATIONS.md allows it.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
data=/srv/volumes/one

claim() {
  cat <<YAML
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  persistentVolumeReclaimPolicy: Recycle
  hostPath: {path: $data}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec:
  accessModes: [ReadWriteMany]
  volumeName: $1
  resources: {requests: {storage: 1Gi}}
YAML
}
is_empty() { [[ -z $(ls -A $data) ]]; }
says() { journalctl -b -u volumed | grep -qF -- "$1"; }
# released NAME: a claim that a pod had is deleted, with files left in its volume.
released() {
  local uid=33333333-0000-4000-8000-00000000000$2
  claim "$1" >/tmp/claim.yaml
  pod "pod-$1" "$uid" "$1" >>/tmp/claim.yaml
  must volumectl apply -f /tmp/claim.yaml
  wait_ready "pod-$1"
  mkdir -p $data/a/b
  echo old >$data/a/b/file
  echo old >$data/.hidden
  must volumectl delete pod "pod-$1"
  wait_gone "pod-$1"
  must volumectl delete persistentvolumeclaim "$1"
}

mkdir -p $data
install_volumed
configure "host-path-root: [/srv/volumes]"
start_volumed
say "by effects"
released scrubbed 1
must wait_until 60 is_empty
# Another volume of the directory would keep the next one from being recycled.
must volumectl delete persistentvolume scrubbed

say "by a container, under the unit as it is"
cat >/etc/volumed/recycler.yaml <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: recycler}
spec:
  restartPolicy: Never
  activeDeadlineSeconds: 60
  containers:
    - name: scrub
      image: busybox
      command: [/bin/sh]
      args: ["-c", "rm -rf /scrub/..?* /scrub/.[!.]* /scrub/*"]
      volumeMounts: [{name: vol, mountPath: /scrub}]
  volumes: [{name: vol, hostPath: {path: /any}}]
YAML
configure "host-path-root: [/srv/volumes]" \
  "pv-recycler-pod-template-filepath-hostpath: /etc/volumed/recycler.yaml"
must systemctl restart volumed
released by-runc 2
must wait_until 30 says "needs the drop-in runc.conf"
expect "nothing was deleted" "$(cat $data/a/b/file)" old

say "by a container, with the drop-in"
must install -D -m 644 /usr/local/share/doc/volumed/runc.conf /etc/systemd/system/volumed.service.d/runc.conf
must systemctl daemon-reload
must systemctl restart volumed
wait_until 60 is_empty || fail "not recycled: $(journalctl -b -u volumed --no-pager | tail -n 5)"
say "up for $(now) s"
