# Disks that come while pods wait for them, go under a pod, and come back as others, with the shipped
# unit: a pod is ready at once when its disk comes, whatever the back-off; a disk that is pulled out
# stops nobody else and its pod can leave; no pod ever gets another's disk.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
uid() { echo "55555555-0000-4000-8000-00000000000$1"; }
# What udev will call the disks, before they are there.
declare -A link=(
  [twin]=/dev/disk/by-id/virtio-twin
  [late-blk]=/dev/disk/by-id/virtio-late-blk
  [late-scsi]=/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_late-scsi
  [late-nvme]=/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_late-nvme)
declare -A kind=([late-blk]=virtio-blk [late-scsi]=virtio-scsi [late-nvme]=nvme)
declare -A number=([twin]=4 [late-blk]=1 [late-scsi]=2 [late-nvme]=3)
names=(late-blk late-scsi late-nvme)
wanted() { pod "$1" "$(uid "${number[$1]}")" "$1" | manifest "$1"; }
# goes NAME: the pod; its PersistentVolume, and with it the record of its disk, stays.
goes() {
  rm "/etc/volumed/manifests/$1.yaml"
  wait_gone "$1" 60
  must wait_until 30 not findmnt -n "$volumed_root/plugins/kubernetes.io/local-volume/mounts/$1"
}
mounts_of() { findmnt -rn -o SOURCE | grep -cxF -e "$(disk_node "$1")" || true; }
place() { volume_path "$(uid "${number[$1]}")" "$1"; }
# The back-off has grown so far that a pod that is ready soon was not ready because of it.
waits_long() { (($(next_try "$1") >= patience)); }
patience=12

install_volumed
for name in "${names[@]}" twin; do local_volume "$name" "${link[$name]}" ext4; done | manifest volumes
start_volumed
must plug virtio-blk twin 96
wanted twin
wait_ready twin 60
echo "of twin" >"$(place twin)/note"
say "pods wait for disks that are not there"
for name in "${names[@]}"; do wanted "$name"; done
for name in "${names[@]}"; do
  must wait_until 30 explains "$name" "does not exist"
done

say "each disk comes when the next try is at least $patience s away"
for name in "${names[@]}"; do
  wait_until 90 waits_long "$name" || fail "no back-off: $(volumectl explain "$name")"
  next=$(next_try "$name")
  path=$(plug "${kind[$name]}" "$name" 96)
  from=$(now)
  expect "path" "$path" "${link[$name]}"
  # The filesystem is made in this time, too.
  wait_ready "$name" 60
  took=$(since "$from")
  say "$name: ready $took s after udev had its link; the next try would have been after $next s"
  expect "sooner than the back-off" "$(awk -v took="$took" -v limit="$next" 'BEGIN { print (took < limit) }')" 1
  echo "of $name" >"$(place "$name")/note"
  sync -f "$(place "$name")"
done

say "a disk is pulled out under its pod"
yank late-scsi
if (echo lost >"$(place late-scsi)/lost" && sync -f "$(place late-scsi)") 2>/dev/null; then fail "a disk that is gone takes writes"; fi
for name in late-blk late-nvme; do
  echo "again" >>"$(place "$name")/note"
  must sync -f "$(place "$name")"
done
expect "the agent runs" "$(property SubState)" running
must wait_until 30 explains late-scsi "has left the node while the volume is in use"
volumectl explain late-scsi
goes late-scsi
wanted late-scsi
must wait_until 30 explains late-scsi "does not exist"
say "it comes back, with what was on it"
from=$(now)
must replug late-scsi
wait_ready late-scsi 60
say "ready $(since "$from") s after the command to plug it in"
expect "its note" "$(cat "$(place late-scsi)/note")" "of late-scsi"

say "two disks come back with each other's serial numbers: neither pod gets the other's"
for name in late-blk twin; do
  goes "$name"
  unplug "$name"
done
must replug late-blk twin
must replug twin late-blk
for name in late-blk twin; do
  wanted "$name"
  must wait_until 60 explains "$name" "has a filesystem with UUID"
  volumectl explain "$name" | grep -m1 error:
done
sleep 3
for name in late-blk twin; do expect "wrong mounts of $name" "$(mounts_of "$name")" 0; done

say "a link that is left behind, and leads to another disk"
for name in late-blk twin; do
  goes "$name"
  unplug "$name"
done
stranger=$(plug virtio-blk stranger 96)
must mkfs.ext4 -q "$stranger"
ln -s "$(readlink -f "$stranger")" "${link[twin]}"
wanted twin
must wait_until 60 explains twin "has a filesystem with UUID"
expect "wrong mounts" "$(mounts_of stranger)" 0
rm "${link[twin]}"
must replug twin
wait_ready twin 90
expect "the right disk's note" "$(cat "$(place twin)/note")" "of twin"
expect "the other pod all this time" "$(head -n 1 "$(place late-nvme)/note")" "of late-nvme"
say "up for $(now) s"
