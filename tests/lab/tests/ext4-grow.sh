# Local volumes are made larger under the shipped unit: ext4 and ext3, xfs and btrfs, each while a pod
# writes to it, without an unmount; ext4 before its next mount. A volume that its pods only read, and
# a filesystem with errors, are not grown, and say why.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/grow.sh
uid() { echo "44444444-0000-4000-8000-00000000000$1"; }
mounts() { awk -v root=$volumed_root/ 'index($5, root "pods/") || index($5, root "plugins/") { print $1, $3, $5 }' /proc/1/mountinfo | sort; }
claim_says() { volumectl describe pvc "$1" | grep -qF -- "$2"; }
events_say() { volumectl events "$1" | grep -qF -- "$2"; }

install_volumed
start_volumed
names=(grow-ext4 grow-ext3 grow-xfs grow-btrfs)
grow_plug grow-ext4 virtio-blk ext4 64
grow_plug grow-ext3 virtio-scsi ext3 64
grow_plug grow-xfs virtio-blk xfs 320
grow_plug grow-btrfs virtio-scsi btrfs 256
for number in 0 1 2 3; do grow_manifest "${names[number]}" "$(uid "$number")"; done
for name in "${names[@]}"; do
  wait_ready "$name" 60
  grow_fill "$name"
  writer_start "$name"
done

say "a claim of more than the device has: the pod runs, and the reason is told"
grow_manifest grow-ext4 "$(uid 0)" 192
must wait_until 30 claim_says grow-ext4 "enlarge the device first"
wait_ready grow-ext4

say "the disks are enlarged from outside, and four filesystems grow in use; the first without a word more"
before=$(mounts)
resize grow-ext4 192
resize grow-ext3 192
resize grow-xfs 640
resize grow-btrfs 512
from=$(now)
grow_manifest grow-ext3 "$(uid 1)" 192
grow_manifest grow-xfs "$(uid 2)" 640
grow_manifest grow-btrfs "$(uid 3)" 512
sizes=(192 192 640 512)
for number in 0 1 2 3; do
  name=${names[number]}
  wait_until 60 grow_has "$name" "${sizes[number]}" ||
    fail "$name has $(grow_bytes "$name") bytes: $(volumectl explain "$name"; volumectl describe pvc "$name")"
  say "$name: ${sizes[number]} MiB after $(since "$from") s"
  must wait_until 20 events_say "$name" FileSystemResizeSuccessful
  must wait_until 20 claim_says "$name" "${sizes[number]}Mi"
done
expect "mounts that moved" "$(diff <(echo "$before") <(mounts) | wc -l)" 0
for name in "${names[@]}"; do
  writer_stop "$name"
  must grow_same "$name"
  expect "lines of $name that were lost" "$(writer_lost "$name")" 0
done

say "a volume that its pod only reads"
read_by() { { grow_volume grow-xfs "$1"; pod reader "$(uid 4)" grow-xfs:ro; } | manifest grow-xfs; }
read_by 640
wait_gone grow-xfs
wait_ready reader
resize grow-xfs 800
read_by 800
must wait_until 30 events_say reader "requested read-only file system"
grow_uid[grow-xfs]=$(uid 4)
expect "it is as large as it was" "$(grow_has grow-xfs 800 && echo grown || echo same)" same

say "a filesystem with errors: the pod runs, the claim says why; it is mended and grown before its next mount"
echo 1 >"/sys/fs/ext4/$(cat "$lab_state/disks/grow-ext4/node")/trigger_fs_error"
resize grow-ext4 320
grow_manifest grow-ext4 "$(uid 0)" 320
must wait_until 30 claim_says grow-ext4 "has errors"
must wait_until 30 explains grow-ext4 "has errors"
wait_ready grow-ext4
expect "it is as large as it was" "$(grow_has grow-ext4 320 && echo grown || echo same)" same
grow_volume grow-ext4 320 | manifest grow-ext4
wait_gone grow-ext4
must wait_until 30 not findmnt -n --source "$(disk_node grow-ext4)"
grow_manifest grow-ext4 "$(uid 0)" 320
wait_ready grow-ext4 90
must wait_until 30 grow_has grow-ext4 320
must grow_same grow-ext4
must wait_until 20 claim_says grow-ext4 320Mi

say "everything goes; what is left is clean"
rm /etc/volumed/manifests/*.yaml
for pod in grow-ext4 grow-ext3 grow-btrfs reader; do wait_gone "$pod"; done
must wait_until 30 nothing_mounted
must e2fsck -fn "$(disk_node grow-ext4)"
must e2fsck -fn "$(disk_node grow-ext3)"
must xfs_repair -n "$(disk_node grow-xfs)"
must btrfs check "$(disk_node grow-btrfs)"
say "up for $(now) s"
