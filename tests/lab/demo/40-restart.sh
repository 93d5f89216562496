title "reload, restart, kill -9: the mounts of the pod stay"
mount_ids() { awk -v root=$volumed_root/ 'index($5, root) == 1 { print $1, $5 }' /proc/1/mountinfo | sort; }
demo_mounts=$(mount_ids)
configure "deadline-mount: 33s"
show systemctl reload volumed
demo_reloaded() { journalctl -b -o cat -u volumed | grep 'configuration reloaded' | grep deadline-mount; }
must wait_until 20 demo_reloaded
demo_reloaded | tail -n 1
show systemctl restart volumed
must volumectl wait app --for ready --timeout 180
demo_agent=$(property MainPID)
show kill -9 "$demo_agent"
demo_is_back() { [[ $(property MainPID) != "$demo_agent" && $(property SubState) == running ]]; }
must wait_until 60 demo_is_back
show volumectl wait app --for ready --timeout 180
show findmnt -rno SOURCE,FSTYPE,SIZE,TARGET "$demo_data"
expect "mounts that moved, by their ids" "$(diff <(echo "$demo_mounts") <(mount_ids) | wc -l)" 0
