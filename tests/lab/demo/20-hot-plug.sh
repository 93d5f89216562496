title "a pod waits for a disk that is not there"
demo_uid=77777777-0000-4000-8000-000000000001
demo_data=$(volume_path $demo_uid data)
{ local_volume data /dev/disk/by-id/virtio-data ext4; pod app $demo_uid data; } | show_yaml app
must wait_until 30 explains app "does not exist"
demo_waits_long() { (($(next_try app) >= 6)); }
must wait_until 60 demo_waits_long
show volumectl explain app

title "the disk is plugged in: the pod is ready, without waiting for the next try"
must plug virtio-blk data 128
demo_from=$(now)
show volumectl wait app --for ready --timeout 180
say "$(since "$demo_from") s after udev had its link; a new disk, so its filesystem was made in this time"
show volumectl get volumes -o wide
show findmnt -rno SOURCE,FSTYPE,SIZE,TARGET "$demo_data"
echo "written before it grew" >"$demo_data/note"
expect "the filesystem" "$(findmnt -rno FSTYPE "$demo_data")" ext4
