# csi-sanity on volumes that are thin logical volumes, with filesystems and raw: each of its cases passes, and nothing is left.
# needs: product csi-sanity
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/sanity.sh
modprobe dm_thin_pool || { echo "skipped: needs the kernel module dm_thin_pool"; exit 77; }
ours() { lvs --noheadings -o lv_name --select 'lv_name=~"^[vs]-"' vg0 | tr -d ' '; }
is_empty() { [[ -z $(ours; ls /srv/fast/volumes /srv/fast/cuts) ]]; }

disk=$(plug virtio-blk pv 16384)
must pvcreate -q "$disk"
must vgcreate -q vg0 "$disk"
must lvcreate -q --type thin-pool -L 15G --poolmetadatasize 32M -n thin vg0
mkdir -p /srv/fast
install_volumed
sanity_configure 'pool: {fast: /srv/fast}' 'pool-lvm: {fast: vg0/thin}'
start_volumed
printf 'backend: lvm\ncsi.storage.k8s.io/fstype: xfs\n' >$lab_state/class.yaml
printf 'readIOPS: "0"\n' >$lab_state/changes.yaml
for access in ${SANITY_ACCESS:-mount block}; do
  sanity_run $access $lab_state/class.yaml $lab_state/changes.yaml
  # The cut of a clone goes after the answer to whoever made the clone.
  wait_until 60 is_empty || fail "left: $(ours; ls /srv/fast/volumes /srv/fast/cuts)"
done
expect "devices that are left" "$(dmsetup info -c --noheadings -o name | grep -cE -- '-[vs]--' || true)" 0
