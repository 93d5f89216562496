title "the pods go, and nothing is left"
rm /etc/volumed/manifests/*.yaml
show volumectl wait app --for gone --timeout 180
must wait_until 30 nothing_mounted
expect "mounts of volumed that PID 1 sees" "$(pod_mounts | wc -l)" 0
must e2fsck -fn "$(disk_node data)"
echo "ok: the disk is clean"
show systemctl stop volumed
