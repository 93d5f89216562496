# A volume that is a directory of a pool whose project quotas bound it, in its steps; sourced after volumed.sh, grow.sh,
# pool.sh and csi.sh. The claim `data` is on a filesystem of TYPE, ext4 or xfs, which is all of the disk `pool`.
#   directories_pool TYPE [POOL]   that filesystem at /srv/data, and the agent with the pool of it, and one more, if given
#   directories_limit TYPE         the claim and its pod, over a kill: its limit holds, and its figures are its account's
#   directories_growth TYPE        it grows while its pod writes, over a kill
#   directories_quota TYPE         quotaBytes by ControllerModifyVolume, over a kill
#   directories_snapshot TYPE      a snapshot, over a kill, and a claim `copy` of it
#   directories_end TYPE           all is deleted, over a kill: no project is left, and the filesystem is clean
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
# Of each project that has a file or a limit: number, KiB that it has, and may have.
projects() { xfs_quota -x -f -c 'report -p -n -N -b' /srv/data | awk '$1 ~ /^#/ && $1 != "#0" && ($2 || $3 || $4) { print substr($1, 2), $2, $4 }'; }
project_of() { lsattr -pd "$(pool_place "$1")" | awk '{ print $1 }'; }
# limit_of NAME: of its project, in MiB.
limit_of() { projects | awk -v id="$(project_of "$1")" '$1 == id { print $3 / 1024 }'; }
limit_is() { [[ $(limit_of "$1") == "$2" ]]; }
no_projects() { [[ -z $(projects) ]]; }
# figure CLAIM capacity|used: in bytes, as the agent exports it.
figure() {
  curl -sS http://127.0.0.1:9788/metrics |
    awk -v name="kubelet_volume_stats_$2_bytes{" -v claim="\"$1\"" 'index($1, name) == 1 && index($1, claim) { printf "%d", $2 }'
}
figure_is() { [[ $(figure "$1" "$2") == "$3" ]]; }
account_is_told() {
  local used
  used=$(projects | awk -v id="$(project_of "$1")" '$1 == id { print $2 * 1024 }')
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

directories_pool() {
  local disk
  say "a pool on an $1 that counts projects"
  mkdir -p /srv/data
  if [[ $1 == ext4 ]]; then
    disk=$(plug virtio-blk pool 384)
    must mkfs.ext4 -q -O quota,project -E quotatype=prjquota "$disk"
  else
    disk=$(plug virtio-scsi pool 384)
    must mkfs.xfs -q "$disk"
  fi
  must mount -o prjquota "$disk" /srv/data
  install_volumed
  configure "pool: {data: /srv/data${2:+, $2}}" 'volume-stats-period: 2s' "csi-serve: $csi_socket" 'csi-profile: central'
  start_volumed
}

directories_limit() {
  say "a claim of 32 MiB, over a kill"
  { pool_class data data backend directory; pool_claim data data 32; pool_pod data; } | apply
  pool_kill
  wait_ready data 60
  expect "projects" "$(projects | wc -l)" 1
  expect "its limit in MiB" "$(limit_of data)" 32
  mkdir "$(pool_place data)/owned"
  chown 1000:1001 "$(pool_place data)/owned"
  chmod 2750 "$(pool_place data)/owned"
  grow_fill data
  fill data "$1" 32
  must wait_until 20 figure_is data capacity $((32 << 20))
  must wait_until 20 account_is_told data
  say "it has $(figure data used) of $(figure data capacity) bytes"
}

directories_growth() {
  local before project from
  say "the claim asks for 64 MiB while its pod writes; the agent is killed meanwhile"
  before=$(pool_field data 1)
  project=$(project_of data)
  writer_start data
  from=$(now)
  pool_claim data data 64 | apply
  pool_kill
  wait_until 60 limit_is data 64 || fail "it has a limit of $(limit_of data) MiB: $(volumectl describe pvc data)"
  say "64 MiB after $(since "$from") s"
  writer_stop data
  expect "lines that were lost" "$(writer_lost data)" 0
  expect "its mount is the same" "$(pool_field data 1)" "$before"
  expect "its project is the same" "$(project_of data)" "$project"
  fill data "$1" 64
  must wait_until 20 figure_is data capacity $((64 << 20))
}

directories_quota() {
  say "quotaBytes by ControllerModifyVolume: lower, kept over a kill, and never above the size"
  expect "quotaBytes of 48 MiB" "$(modify data $((48 << 20)))" 0
  expect "its limit in MiB" "$(limit_of data)" 48
  expect "quotaBytes of 65 MiB is INVALID_ARGUMENT" "$(modify data $((65 << 20)))" 3
  pool_kill
  expect "its limit in MiB" "$(limit_of data)" 48
  fill data "$1" 48
  must grow_same data
}

directories_snapshot() {
  say "a snapshot: not while a pod has it; then over a kill"
  pool_snapshot data data | apply
  must wait_until 30 snapshot_says data "mounted for writing"
  pool_gone data
  pool_kill all
  wait_until 60 snapshot_ready data || fail "$(volumectl describe volumesnapshot data)"

  say "a claim of 40 MiB more than the source had, of the snapshot: a project and a limit of its own"
  { pool_pod data; pool_claim copy data 104 VolumeSnapshot data; pool_pod copy; } | apply
  pool_kill
  wait_ready copy 60
  wait_ready data 60
  cp $lab_state/sums-data $lab_state/sums-copy
  must grow_same copy
  expect "owner and mode of a directory of it" "$(stat -c %u:%g:%a "$(pool_place copy)/owned")" 1000:1001:2750
  [[ $(project_of copy) != "$(project_of data)" ]] || fail "it has the project of its source"
  expect "limit of the copy in MiB" "$(limit_of copy)" 104
  fill copy "$1" 104
  expect "limit of the source in MiB" "$(limit_of data)" 48
  expect "projects" "$(projects | wc -l)" 2
}

directories_end() {
  local device
  say "all is deleted, over a kill: no project has a file or a limit"
  volumectl delete volumesnapshot data
  volumectl delete pod data
  volumectl delete pod copy
  volumectl delete pvc data
  volumectl delete pvc copy
  pool_kill all
  must wait_until 60 pool_is_empty data
  wait_until 20 no_projects || fail "projects that are left: $(projects)"
  must wait_until 30 nothing_mounted
  must systemctl stop volumed
  device=$(findmnt -no SOURCE /srv/data)
  must umount /srv/data
  if [[ $1 == ext4 ]]; then must e2fsck -fn "$device"; else must xfs_repair -n "$device"; fi
  say "up for $(now) s"
}
