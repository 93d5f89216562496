title "the disk becomes larger, and its ext4 grows while the pod has it"
demo_mounts=$(pod_mounts)
show df -h --output=size,avail,target "$demo_data"
resize data 512
{ local_volume data /dev/disk/by-id/virtio-data ext4 512; pod app $demo_uid data; } | manifest app
say "the disk has 512 MiB, and the PersistentVolume says so, too"
has_grown() { (($(stat -fc '%b * %S' "$demo_data") > 400 << 20)); }
must wait_until 60 has_grown
grown_is_told() { volumectl events pvc/data | grep -q FileSystemResizeSuccessful; }
must wait_until 20 grown_is_told
show df -h --output=size,avail,target "$demo_data"
show volumectl events pvc/data
show volumectl describe pvc data
expect "its files" "$(cat "$demo_data/note")" "written before it grew"
[[ $(pod_mounts) == "$demo_mounts" ]] || fail "a mount moved"
echo "ok: nothing was unmounted for it"
