# An NFS server (the kernel's, version 4) on the second machine; sourced after server.sh.
#   nfs_start             exports /srv/lab, an ext4 of its own, as $server_address:/srv/lab
#   nfs_stop              in order: connections are closed, the port refuses
#   nfs_restart           after nfs_stop
# server_cut is what a crashed or unreachable server looks like.
nfs_start() {
  must modprobe -a nfsd nfs nfsv4 loop
  mkdir -p /srv/lab
  truncate -s 256M /srv/lab.img
  must mkfs.ext4 -q /srv/lab.img
  must mount -o loop /srv/lab.img /srv/lab
  chmod 777 /srv/lab
  echo '/srv/lab *(rw,no_root_squash,no_subtree_check,fsid=1,insecure)' >/etc/exports
  # The view of nfsd's control files is that of the namespace that mounts them.
  on_server bash -c 'mount -t nfsd nfsd /proc/fs/nfsd && exportfs -ra && rpc.mountd -N 2 -N 3 &&
    rpc.nfsd -N 3 --grace-time 10 --lease-time 10 2' >"$lab_state/nfs.log" 2>&1 ||
    fail "NFS server: $(cat "$lab_state/nfs.log")"
}
nfs_threads() { on_server bash -c "mount -t nfsd nfsd /proc/fs/nfsd && rpc.nfsd -N 3 $1"; }
nfs_stop() { must nfs_threads 0; }
nfs_restart() { must nfs_threads 2; }
