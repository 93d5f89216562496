# Volumes that are directories of a pool, on an ext4 and an xfs whose project quotas bound them, under
# the shipped unit: their limit, account, growth in use and quotaBytes, a snapshot, a volume of it,
# deletion. The agent is killed in between, and no project is left in the end.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/grow.sh
. /lab/lib/pool.sh
. /lab/lib/csi.sh
types=(ext4 xfs)
# What the kernel says to who has no room left in a project; Source: Linux fs/quota/dquot.c, fs/xfs/xfs_trans_dquot.c.
declare -A beyond=([ext4]="Disk quota exceeded" [xfs]="No space left on device")

# As root in a container, which lacks what lets a writer past the limits of an ext4.
in_container() { setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource "$@"; }
# write_file NAME FILE MI: what the kernel says, if it refuses it.
write_file() {
  in_container dd if=/dev/zero of="$(pool_place "$1")/$2" bs=64K count=$(($3 * 16)) conv=fsync status=none 2>&1 |
    sed -n 's/.*: //p' | head -n 1 || true
}
# fill NAME TYPE MI: a file takes what the limit leaves, and not more; but an ext4 takes a block for where the
# file's blocks are in any case.
fill() {
  local place said
  place=$(pool_place "$1")
  said=$(write_file "$1" big $(($3 * 2)))
  expect "$1: a write beyond $3 MiB" "$said" "${beyond[$2]}"
  local has
  has=$(du -sk "$place" | cut -f1)
  ((has <= ($3 << 10) + 16 && has > ($3 << 10) * 4 / 5)) || fail "$1 has $has KiB of $(($3 << 10))"
  rm "$place/big"
}
# projects TYPE: of each that has a file or a limit, number, KiB that it has, and may have.
projects() { xfs_quota -x -f -c 'report -p -n -N -b' "/srv/$1" | awk '$1 ~ /^#/ && $1 != "#0" && ($2 || $3 || $4) { print substr($1, 2), $2, $4 }'; }
project_of() { lsattr -pd "$(pool_place "$1")" | awk '{ print $1 }'; }
# limit_of NAME TYPE: of its project, in MiB.
limit_of() { projects "$2" | awk -v id="$(project_of "$1")" '$1 == id { print $3 / 1024 }'; }
limit_is() { [[ $(limit_of "$1" "$2") == "$3" ]]; }
no_projects() { [[ -z $(projects "$1") ]]; }
# figure CLAIM capacity|used: in bytes, as the agent exports it.
figure() {
  curl -sS http://127.0.0.1:9788/metrics |
    awk -v name="kubelet_volume_stats_$2_bytes{" -v claim="\"$1\"" 'index($1, name) == 1 && index($1, claim) { printf "%d", $2 }'
}
figure_is() { [[ $(figure "$1" "$2") == "$3" ]]; }
account_is_told() {
  local used
  used=$(projects "$2" | awk -v id="$(project_of "$1")" '$1 == id { print $2 * 1024 }')
  figure_is "$1" used "$used"
}
snapshot_says() { volumectl describe volumesnapshot "$1" | grep -qF -- "$2"; }
pool_is_empty() { [[ -z $(find "/srv/$1/volumes" "/srv/$1/cuts" -mindepth 1 -maxdepth 1) ]]; }

# modify NAME BYTES: ControllerModifyVolume with these quotaBytes; prints the code.
modify() {
  local id
  id=$(pool_field "$1" 4 | cut -d/ -f3)
  csi_call Controller ControllerModifyVolume \
    "$(csi_text 1 "$id")$(csi_message 3 "$(csi_text 1 quotaBytes)$(csi_text 2 "$2")")"
}

say "three disks: an ext4 and an xfs that count projects, and an ext4 that does not"
mkdir -p /srv/ext4 /srv/xfs /srv/plain
ext4=$(plug virtio-blk pool-ext4 384)
xfs=$(plug virtio-scsi pool-xfs 384)
plain=$(plug virtio-blk pool-plain 64)
must mkfs.ext4 -q -O quota,project -E quotatype=prjquota "$ext4"
must mkfs.xfs -q "$xfs"
must mkfs.ext4 -q "$plain"
must mount -o prjquota "$ext4" /srv/ext4
must mount -o prjquota "$xfs" /srv/xfs
must mount "$plain" /srv/plain
install_volumed
configure 'pool: {ext4: /srv/ext4, xfs: /srv/xfs, plain: /srv/plain}' 'volume-stats-period: 2s' \
  "csi-serve: $csi_socket" 'csi-profile: central'
start_volumed

say "a claim of 32 MiB on each, over a kill"
for name in "${types[@]}"; do
  { pool_class "$name" "$name" backend directory; pool_claim "$name" "$name" 32; pool_pod "$name"; } | apply
done
{ pool_class plain plain backend directory; pool_claim plain plain 32; pool_pod plain; } | apply
pool_kill
for name in "${types[@]}"; do
  wait_ready "$name" 60
  expect "projects on $name" "$(projects "$name" | wc -l)" 1
  expect "limit of $name in MiB" "$(limit_of "$name" "$name")" 32
  mkdir "$(pool_place "$name")/owned"
  chown 1000:1001 "$(pool_place "$name")/owned"
  chmod 2750 "$(pool_place "$name")/owned"
  grow_fill "$name"
  fill "$name" "$name" 32
done
must wait_until 30 explains plain "feature project"
volumectl delete pod plain
volumectl delete pvc plain
must wait_until 30 pool_is_empty plain  # what a try has made it takes away again

say "its figures are those of its account"
for name in "${types[@]}"; do
  must wait_until 20 figure_is "$name" capacity $((32 << 20))
  must wait_until 20 account_is_told "$name" "$name"
  say "$name has $(figure "$name" used) of $(figure "$name" capacity) bytes"
done

say "the claim asks for 64 MiB while its pod writes; the agent is killed meanwhile"
for name in "${types[@]}"; do
  before=$(pool_field "$name" 1)
  project=$(project_of "$name")
  writer_start "$name"
  from=$(now)
  pool_claim "$name" "$name" 64 | apply
  pool_kill
  wait_until 60 limit_is "$name" "$name" 64 || fail "$name has a limit of $(limit_of "$name" "$name") MiB: $(volumectl describe pvc "$name")"
  say "$name: 64 MiB after $(since "$from") s"
  writer_stop "$name"
  expect "lines of $name that were lost" "$(writer_lost "$name")" 0
  expect "its mount is the same" "$(pool_field "$name" 1)" "$before"
  expect "its project is the same" "$(project_of "$name")" "$project"
  fill "$name" "$name" 64
  must wait_until 20 figure_is "$name" capacity $((64 << 20))
done

say "quotaBytes by ControllerModifyVolume: lower, kept over a kill, and never above the size"
for name in "${types[@]}"; do
  expect "$name: quotaBytes of 48 MiB" "$(modify "$name" $((48 << 20)))" 0
  expect "limit of $name in MiB" "$(limit_of "$name" "$name")" 48
  expect "$name: quotaBytes of 65 MiB is INVALID_ARGUMENT" "$(modify "$name" $((65 << 20)))" 3
done
pool_kill
for name in "${types[@]}"; do
  expect "limit of $name in MiB" "$(limit_of "$name" "$name")" 48
  fill "$name" "$name" 48
  must grow_same "$name"
done

say "a snapshot: not while a pod has it; then over a kill"
for name in "${types[@]}"; do pool_snapshot "$name" "$name" | apply; done
for name in "${types[@]}"; do must wait_until 30 snapshot_says "$name" "mounted for writing"; done
pool_gone "${types[@]}"
pool_kill all
for name in "${types[@]}"; do
  wait_until 60 snapshot_ready "$name" || fail "$(volumectl describe volumesnapshot "$name")"
done

say "a claim of 40 MiB more than the source had, of the snapshot: a project and a limit of its own"
for name in "${types[@]}"; do
  { pool_pod "$name"; pool_claim "copy-$name" "$name" 104 VolumeSnapshot "$name"; pool_pod "copy-$name"; } | apply
done
pool_kill
for name in "${types[@]}"; do
  wait_ready "copy-$name" 60
  wait_ready "$name" 60
  cp $lab_state/sums-"$name" $lab_state/sums-"copy-$name"
  must grow_same "copy-$name"
  expect "owner and mode of a directory of it" "$(stat -c %u:%g:%a "$(pool_place "copy-$name")/owned")" 1000:1001:2750
  [[ $(project_of "copy-$name") != "$(project_of "$name")" ]] || fail "it has the project of its source"
  expect "limit of the copy in MiB" "$(limit_of "copy-$name" "$name")" 104
  fill "copy-$name" "$name" 104
  expect "limit of the source in MiB" "$(limit_of "$name" "$name")" 48
  expect "projects on $name" "$(projects "$name" | wc -l)" 2
done

say "all is deleted, over a kill: no project has a file or a limit"
for name in "${types[@]}"; do
  volumectl delete volumesnapshot "$name"
  volumectl delete pod "$name"
  volumectl delete pod "copy-$name"
  volumectl delete pvc "$name"
  volumectl delete pvc "copy-$name"
done
pool_kill all
for name in "${types[@]}"; do
  must wait_until 60 pool_is_empty "$name"
  wait_until 20 no_projects "$name" || fail "projects that are left on $name: $(projects "$name")"
done
must wait_until 30 nothing_mounted
must systemctl stop volumed
must umount /srv/ext4 /srv/xfs
must e2fsck -fn "$ext4"
must xfs_repair -n "$xfs"
say "up for $(now) s"
