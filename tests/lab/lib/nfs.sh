# An NFS server (the kernel's) on the second machine; sourced after server.sh.
#   nfs_start [3]         exports /srv/lab, an ext4 of its own, as $server_address:/srv/lab, also by
#                         IPv6 as $server_address6; of version 4, with 3 also that
#   nfs_stop              in order: connections are closed, the port refuses
#   nfs_restart           after nfs_stop
#   nfs_volume NAME PATH [MORE]       manifests: a PersistentVolume of that export and its claim
#   nfs_pod NAME UID SERVER PATH [MORE]   a manifest: one pod with an nfs volume "data" of its own
#   nfs_path UID [VOLUME]             where a pod's NFS volume is
# server_cut is what a crashed or unreachable server looks like.
server_address6=fd77::2
nfs_start() {
  local versions="-N 3" start=:
  must modprobe -a nfsd nfs nfsv4 loop
  mkdir -p /srv/lab
  truncate -s 256M /srv/lab.img
  must mkfs.ext4 -q /srv/lab.img
  must mount -o loop /srv/lab.img /srv/lab
  chmod 777 /srv/lab
  must ip address add fd77::1/64 dev cable nodad
  must on_server ip address add $server_address6/64 dev cable nodad
  echo '/srv/lab *(rw,no_root_squash,no_subtree_check,fsid=1,insecure)' >/etc/exports
  if [[ ${1:-} == 3 ]]; then
    must modprobe nfsv3
    versions="-V 3"
    # Its sockets are in /run, where the node's own portmapper has those of its.
    start="mount -t tmpfs tmpfs /run && rpcbind"
  fi
  # The view of nfsd's control files is that of the namespace that mounts them.
  on_server bash -c "$start && mount -t nfsd nfsd /proc/fs/nfsd && exportfs -ra &&
    rpc.mountd ${versions/-V 3/} && rpc.nfsd $versions --grace-time 10 --lease-time 10 2" \
    >"$lab_state/nfs.log" 2>&1 || fail "NFS server: $(cat "$lab_state/nfs.log")"
}
nfs_threads() { on_server bash -c "mount -t nfsd nfsd /proc/fs/nfsd && rpc.nfsd -N 3 $1"; }
nfs_stop() { must nfs_threads 0; }
nfs_restart() { must nfs_threads 2; }

nfs_path() { echo "/var/lib/volumed/pods/$1/volumes/kubernetes.io~nfs/${2:-data}"; }
nfs_volume() {
  cat <<YAML
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1}
spec:
  capacity: {storage: 64Mi}
  accessModes: [ReadWriteMany]
  nfs: {server: $server_address, path: $2}
  ${3:-}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec:
  accessModes: [ReadWriteMany]
  volumeName: $1
  resources: {requests: {storage: 32Mi}}
YAML
}
nfs_pod() {
  cat <<YAML
---
apiVersion: v1
kind: Pod
metadata: {name: $1, uid: $2}
spec:
  containers:
    - {name: main, image: busybox, volumeMounts: [{name: data, mountPath: /data}]}
  volumes:
    - {name: data, nfs: {server: "$3", path: $4${5:+, $5}}}
YAML
}
