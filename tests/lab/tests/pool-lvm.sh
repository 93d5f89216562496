# Volumes of a pool as thin logical volumes (backend lvm), by the real lvm2 and device-mapper under
# the shipped unit: made for a claim, written to, cut while a pod writes, restored, cloned, grown in
# use, and deleted, with the agent and its workers killed amid cuts; what is somebody else's stays.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
modprobe dm_thin_pool || { echo "skipped: needs the kernel module dm_thin_pool"; exit 77; }
app=55555555-0000-4000-8000-000000000001
copy=55555555-0000-4000-8000-000000000002
twin=55555555-0000-4000-8000-000000000003
xapp=55555555-0000-4000-8000-000000000004
xcopy=55555555-0000-4000-8000-000000000005
rounds=4

# class NAME FSTYPE
class() {
  cat <<YAML
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: $1}
provisioner: pool.volumed.io
reclaimPolicy: Delete
allowVolumeExpansion: true
parameters: {backend: lvm, csi.storage.k8s.io/fstype: $2}
YAML
}
# claim NAME CLASS MI [KIND SOURCE]: of a VolumeSnapshot or of another claim, if that is named.
claim() {
  local source= group=
  [[ ${4:-} != VolumeSnapshot ]] || group="apiGroup: snapshot.storage.k8s.io, "
  [[ -z ${4:-} ]] || source="dataSource: {${group}kind: $4, name: $5}"
  cat <<YAML
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: $2
  resources: {requests: {storage: ${3}Mi}}
  $source
YAML
}
snapshot_class() {
  cat <<YAML
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata:
  name: thin
  annotations: {snapshot.storage.kubernetes.io/is-default-class: "true"}
driver: pool.volumed.io
deletionPolicy: Delete
YAML
}
# snapshot NAME CLAIM
snapshot() {
  cat <<YAML
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: $1}
spec: {source: {persistentVolumeClaimName: $2}}
YAML
}
apply() { cat >/tmp/objects.yaml && must volumectl apply -f /tmp/objects.yaml; }
# place UID: where the pod of this uid has its one volume.
place() { echo "$volumed_root/pods/$1/volumes/volumed.io~pool"/*; }
device_of() { awk -v at="$(place "$1")" '$5 == at { print $(NF - 1) }' /proc/1/mountinfo; }
uuid_of() { blkid -p -o value -s UUID "$(device_of "$1")"; }
ours() { lvs --noheadings -o lv_name --select 'lv_name=~"^[vs]-"' vg0 | awk '{ print $1 }' | sort; }
count() { ours | grep -c "^$1-" || true; }
has_ours() { [[ $(count "$1") == "$2" ]]; }
suspended() { dmsetup info -c --noheadings -o name,suspended | grep -c ':Suspended$' || true; }
ready_to_use() { volumectl get volumesnapshots "$1" | grep -q true; }
is_cut() { wait_until 60 ready_to_use "$1" || fail "$1 is not cut: $(volumectl describe volumesnapshot "$1"; journalctl --no-pager -b -u volumed -n 20; lvs -a vg0)"; }
agent_is_new() { [[ $(property MainPID) != "$1" && $(property SubState) == running ]]; }
has_grown() { (($(stat -fc '%b * %S' "$(place "$1")") > ($2 << 20) * 4 / 5)); }
lines() { wc -l <"$(place $app)/lines"; }
has_more_lines_than() { (($(lines) > $1)); }

say "a thin pool on a disk, beside a logical volume of somebody else"
disk=$(plug virtio-blk pv 2048)
must pvcreate -q "$disk"
must vgcreate -q vg0 "$disk"
must lvcreate -q --type thin-pool -L 1800M --poolmetadatasize 8M -n thin vg0
must lvcreate -q --type thin -V 32M --thinpool thin -n of-somebody vg0
mkdir -p /srv/fast
install_volumed
mkdir -p /etc/systemd/system/volumed.service.d
printf '[Unit]\nStartLimitIntervalSec=0\n' >/etc/systemd/system/volumed.service.d/lab.conf
must systemctl daemon-reload
configure 'pool: {fast: /srv/fast}' 'pool-lvm: {fast: vg0/thin}'
start_volumed

say "a claim gets a logical volume, which is active while a pod has it"
{ class ext4 ext4; class xfs xfs; claim data ext4 64; pod app $app data; } | apply
wait_ready app 90
expect "its filesystem" "$(findmnt -no FSTYPE "$(place $app)")" ext4
expect_text "its device" "$(device_of $app)" /dev/dm-
volume=$(ours)
expect_text "its name" "$volume" v-
expect "its tag" "$(lvs --noheadings -o lv_tags "vg0/$volume" | tr -d ' ')" "volumed.$volume"
expect "it is not activated by itself" "$(lvs --noheadings -o lv_skip_activation "vg0/$volume" | tr -d ' ')" skipactivation
echo then >"$(place $app)/note"
sync -f "$(place $app)"

say "it is cut while a pod has it; a claim of the snapshot has what was there then"
{ snapshot_class; snapshot before data; } | apply
is_cut before
expect "cuts" "$(count s)" 1
id=$(ours | grep '^s-')
echo later >"$(place $app)/note"
{ claim restored ext4 96 VolumeSnapshot before; pod copy $copy restored; } | apply
wait_ready copy 90
expect "the restored note" "$(cat "$(place $copy)/note")" then
expect "the note of its source" "$(cat "$(place $app)/note")" later
[[ $(uuid_of $copy) != "$(uuid_of $app)" ]] || fail "a copy has the UUID of its source"
must has_grown $copy 96
restored=$(dmsetup info -c --noheadings -o name "$(device_of $copy)" | sed 's/^vg0-//; s/--/-/g')
restored_pv=$(basename "$(place $copy)")

say "a clone, and a restore by hand of what is no image"
{ claim twin ext4 64 PersistentVolumeClaim data; pod twin $twin twin; } | apply
wait_ready twin 90
expect "the note of the clone" "$(cat "$(place $twin)/note")" later
volumectl snapshot restore "$id" by-hand 2>/dev/null >/tmp/by-hand.yaml || fail "restore by hand: $(volumectl snapshot restore "$id" by-hand 2>&1)"
expect_text "its PersistentVolume" "$(cat /tmp/by-hand.yaml)" volumeHandle

say "an xfs is cut with a log to be replayed, and its copy gets a UUID of its own"
{ claim xdata xfs 320; pod xapp $xapp xdata; } | apply
wait_ready xapp 90
echo then >"$(place $xapp)/note"
{ snapshot xbefore xdata; claim xcopy xfs 320 VolumeSnapshot xbefore; } | apply
is_cut xbefore
pod xcopy $xcopy xcopy | apply
wait_ready xcopy 90
expect "the note of the xfs" "$(cat "$(place $xcopy)/note")" then
[[ $(uuid_of $xcopy) != "$(uuid_of $xapp)" ]] || fail "two xfs have one UUID"

say "it grows in use"
claim data ext4 128 | apply
must wait_until 90 has_grown $app 128
expect "its note" "$(cat "$(place $app)/note")" later

say "the agent and its workers are killed amid cuts: the writer goes on, and nothing stays suspended"
(
  number=0
  while [[ ! -e /tmp/writer.stop ]]; do
    number=$((number + 1))
    echo "line $number" >>"$(place $app)/lines"
    sync "$(place $app)/lines"
  done
) &
writer=$!
must wait_until 20 has_more_lines_than 3
for ((round = 1; round <= rounds; round++)); do
  agent=$(property MainPID)
  (volumectl snapshot create "$volume" --name "round-$round" >/dev/null 2>&1 || true) &
  asked=$!
  moment=$((RANDOM % 1500))
  sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
  must systemctl kill --signal=KILL --kill-who=all volumed
  must wait_until 60 agent_is_new "$agent"
  wait "$asked" || true
  # The same call finds what the first one made, or makes it.
  made() { volumectl snapshot create "$volume" --name "round-$round" | grep -q Ready; }
  wait_until 90 made || fail "round $round: $(volumectl snapshot create "$volume" --name "round-$round" 2>&1; lvs -a vg0; dmsetup info -c)"
  expect "what is suspended after $moment ms" "$(suspended)" 0
  before=$(lines)
  must wait_until 20 has_more_lines_than "$before"
done
touch /tmp/writer.stop
wait $writer
# Those of the two VolumeSnapshots, of the rounds, and none that no row knows; that of a clone goes by itself.
must wait_until 60 has_ours s $((2 + rounds))

say "the pods go, and with them what is active"
for name in app copy twin xapp xcopy; do must volumectl delete pod $name; done
for name in app copy twin xapp xcopy; do wait_gone $name 60; done
must wait_until 30 nothing_mounted
expect "active volumes" "$(lvs --noheadings -o lv_name --select 'lv_active="active" && lv_name=~"^v-"' vg0 | wc -l)" 0
must lvchange -ay -K "vg0/$volume"
must e2fsck -fn "/dev/vg0/$volume"
must lvchange -an "vg0/$volume"

say "another logical volume in the place of one is left alone"
must lvrename vg0 "$restored" moved
must lvcreate -q --type thin -V 32M --thinpool thin -n "$restored" vg0
must volumectl delete pvc restored
refused() {
  { journalctl --no-pager -b -u volumed; volumectl describe pv "$restored_pv"; volumectl events; } |
    grep -q "does not have the tag volumed.$restored"
}
must wait_until 30 refused
must lvs "vg0/$restored"
# Nobody asks for the deletion while there is none of the name.
must systemctl stop volumed
must lvremove -q --yes "vg0/$restored"
must lvrename vg0 moved "$restored"
start_volumed

say "all goes, and nothing of somebody else"
for name in data twin xdata xcopy; do must volumectl delete pvc "$name"; done
for name in before xbefore; do must volumectl delete volumesnapshot $name; done
for id in $(volumectl snapshot get | grep -oE 's-[0-9a-f]{8}-[0-9a-f]{24}' | sort -u); do
  volumectl snapshot delete "$id" >/dev/null 2>&1 || true
done
by_hand=$(grep -oE 'v-[0-9a-f]{8}-[0-9a-f]{24}' /tmp/by-hand.yaml | head -n 1)
only_by_hand() { [[ $(ours) == "$by_hand" ]]; }
wait_until 120 only_by_hand || fail "left: $(ours); $(volumectl get pv; volumectl get snapshots; journalctl --no-pager -b -u volumed -n 40)"
must lvs vg0/of-somebody
expect "directories of volumes" "$(ls /srv/fast/volumes)" "$by_hand"
expect "directories of cuts" "$(ls /srv/fast/cuts)" ""

say "a thin pool that is not there is told, and other volumes are made"
must systemctl stop volumed
configure 'pool: {fast: /srv/fast}' 'pool-lvm: {fast: vg0/gone}'
start_volumed
{ claim more ext4 64; } | apply
told() { volumectl describe pvc more | grep -q 'has no thin pool gone'; }
must wait_until 30 told
say "up for $(now) s"
