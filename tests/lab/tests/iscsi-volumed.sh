# iSCSI volumes of a real target by a real open-iscsi, under the shipped unit: CHAP,
# two LUNs over one session, a limit of two, a raw block volume, a LUN that grows, an agent that is
# killed between login and mount, a session that ends while no agent runs; in the end no session, no
# disk and no record of open-iscsi is left.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/server.sh
. /lab/lib/iscsi.sh
. /lab/lib/volumed.sh
uid=33333333-0000-4000-8000-00000000000
secret=canary-4711-geheim
install_volumed
server_up
iscsi_target_start 96
iscsi_target_lun 2 64
iscsi_target_lun 3 64
iscsi_target_chap robot $secret
iscsi_initiator 5
iscsi_secret chap robot $secret >/etc/volumed/manifests/chap.yaml
configure "attach-limits: {kubernetes.io/iscsi: 2}"
start_volumed

sessions() { iscsiadm -m session 2>/dev/null | wc -l; }
disks() { lsblk -dnro NAME,TRAN | grep -c iscsi || true; }
nothing_left() { [[ $(sessions) == 0 && $(disks) == 0 ]]; }
path() { echo "$volumed_root/pods/$uid$1/volumes/kubernetes.io~iscsi/$2"; }

say "two pods, two LUNs, one session, with CHAP"
{ iscsi_volume lun1 1 chap; pod first ${uid}1 lun1; } >/etc/volumed/manifests/first.yaml
wait_ready first 90
echo first >"$(path 1 lun1)/note"
{ iscsi_volume lun2 2 chap; pod second ${uid}2 lun2; } >/etc/volumed/manifests/second.yaml
wait_ready second 90
expect "sessions" "$(sessions)" 1
expect "disks" "$(disks)" 2
expect "who reads the record with the secret" "$(stat -c %a /etc/iscsi/nodes/$iscsi_target/*/*)" 600
expect "the secret in logs" "$(journalctl -b | grep -c $secret || true)" 0
expect "the secret in the agent's files" "$(grep -rlF $secret $volumed_root/volumed/records $volumed_root/plugins | wc -l)" 0

say "the LUN grows while the pod has it"
iscsi_target_resize 1 160
sed -i '0,/storage: 64Mi/s//storage: 160Mi/' /etc/volumed/manifests/first.yaml
grown() { (($(findmnt -bno SIZE "$(path 1 lun1)") > 120 << 20)); }
must wait_until 60 grown
expect "what was written" "$(cat "$(path 1 lun1)/note")" first

say "the node takes no third one"
{ iscsi_volume lun3 3 chap Block; block_pod raw ${uid}3 lun3; } >/etc/volumed/manifests/raw.yaml
no_slot() { explains raw "the node takes at most 2 volumes of limit \"storage-limits-iscsi\""; }
must wait_until 30 no_slot
expect "disks" "$(disks)" 2
rm /etc/volumed/manifests/raw.yaml
wait_gone raw 60

say "one pod leaves: the session stays for the other"
mv /etc/volumed/manifests/first.yaml /root/first.yaml
wait_gone first 60
one_disk() { [[ $(disks) == 1 ]]; }
must wait_until 30 one_disk
expect "sessions" "$(sessions)" 1
rm /etc/volumed/manifests/second.yaml
wait_gone second 60
must wait_until 40 nothing_left

say "a raw block volume"
{ iscsi_volume lun3 3 chap Block; block_pod raw ${uid}3 lun3; } >/etc/volumed/manifests/raw.yaml
wait_ready raw 90
link=$volumed_root/pods/${uid}3/volumeDevices/kubernetes.io~iscsi/lun3
echo raw | dd of="$link" conv=fsync status=none
rm /etc/volumed/manifests/raw.yaml
wait_gone raw 60
must wait_until 40 nothing_left

say "the agent is killed between login and mount"
logged_in() { [[ $(sessions) == 1 ]]; }
cp /root/first.yaml /etc/volumed/manifests/first.yaml
must wait_until 60 logged_in
before=$(property MainPID)
systemctl kill -s KILL --kill-whom=main volumed
agent_is_new() { [[ $(property MainPID) != "$before" ]] && volumectl status >/dev/null 2>&1; }
must wait_until 60 agent_is_new
wait_ready first 90
expect "sessions" "$(sessions)" 1
expect "what was written" "$(cat "$(path 1 lun1)/note")" first

say "its session ends while no agent runs: told, left alone, and logged in to anew for the next pod"
systemctl stop volumed
iscsi_logout
start_volumed
is_missed() { explains first "is not attached to this node any more"; }
must wait_until 60 is_missed
expect "mounts of the pod" "$(findmnt -nl -o TARGET "$(path 1 lun1)" | wc -l)" 1
rm /etc/volumed/manifests/first.yaml
wait_gone first 60
must wait_until 40 nothing_left
cp /root/first.yaml /etc/volumed/manifests/first.yaml
wait_ready first 90
expect "what was written" "$(cat "$(path 1 lun1)/note")" first
rm /etc/volumed/manifests/first.yaml
wait_gone first 60
must wait_until 40 nothing_left
expect "records of open-iscsi" "$(find /etc/iscsi/nodes /etc/iscsi/send_targets -type f 2>/dev/null | wc -l)" 0
expect "mounts" "$(pod_mounts)" ""
say "up for $(now) s"
