# csi-sanity, asked of the agent's own driver; sourced after volumed.sh, by a test that needs csi-sanity.
#   sanity_lvm mount|block snapshots|others    these cases on thin logical volumes, of which nothing is left
#   sanity_configure LINE...     what it needs of the configuration, beside these lines; of a pool with room for some
#                                volumes of 512 MiB at a time
#   sanity_run mount|block snapshots|others FILE CHANGES    its cases of snapshots, or all others, with filesystems or raw; FILE
#                                has the parameters of a class, and CHANGES those that ControllerModifyVolume is asked for.
#                                What it says is in /lab/out.
sanity_at=/srv/sanity
# Of the 103 cases of 5.6.0 those whose name has the word, and the rest; one is pending in every run.
declare -A sanity_choice=([snapshots]='--ginkgo.focus=(?i)snapshot' [others]='--ginkgo.skip=(?i)snapshot')
declare -A sanity_all=([snapshots]="26 Passed | 0 Failed | 1 Pending | 76 Skipped"
  [others]="76 Passed | 0 Failed | 1 Pending | 26 Skipped")

sanity_configure() {
  mkdir -p $sanity_at
  configure "$@" "csi-serve: $sanity_at/csi.sock" 'csi-profile: central' 'csi-serve-level: "1.13"' 'csi-max-volumes: 3' \
    "csi-target-roots: [$sanity_at]" 'node-name: n1'
}

sanity_run() {
  local access=$1 part=$2 report=/lab/out/sanity-$1-$2.log status=0 cases=0 from line
  from=$(now)
  /lab/csi-sanity --csi.endpoint=$sanity_at/csi.sock --csi.mountdir=$sanity_at/mount --csi.stagingdir=$sanity_at/stage \
    --csi.testvolumeaccesstype="$access" --csi.testvolumesize=$((384 << 20)) --csi.testvolumeexpandsize=$((512 << 20)) \
    --csi.testvolumeparameters="$3" --csi.testvolumemutableparameters="$4" \
    --csi.testnodevolumeattachlimit "${sanity_choice[$part]}" --ginkgo.no-color --ginkgo.v 2>&1 | tee "$report" |
    while IFS= read -r line; do
      [[ $line != •* ]] || ((++cases % 10)) || say "$cases cases after $(since "$from") s"
    done || status=$?
  say "csi-sanity, $access, $part: $(since "$from") s"
  ((status == 0)) || fail "csi-sanity, $access, $part: $(grep -A 12 -F -e '[FAILED]' -e '[PANICKED]' "$report" | head -n 80)"
  expect "csi-sanity, $access, $part" "$(sed -n 's/.* -- \([0-9]* Passed.*\)/\1/p' "$report" | tail -n 1)" "${sanity_all[$part]}"
}

sanity_lvm_left() {
  lvs --noheadings -o lv_name --select 'lv_name=~"^[vs]-"' vg0 | tr -d ' '
  ls /srv/fast/volumes /srv/fast/cuts -A1 | sed '/^$/d; /:$/d'
}
sanity_is_open() { volumectl get pools fast | grep -qw open; }
sanity_lvm_is_empty() { [[ -z $(sanity_lvm_left) ]]; }
sanity_lvm() {
  local disk
  modprobe dm_thin_pool || { echo "skipped: needs the kernel module dm_thin_pool"; exit 77; }
  disk=$(plug virtio-blk pv 16384)
  must pvcreate -q "$disk"
  must vgcreate -q vg0 "$disk"
  must lvcreate -q --type thin-pool -L 15G --poolmetadatasize 32M -n thin vg0
  mkdir -p /srv/fast
  install_volumed
  sanity_configure 'pool: {fast: /srv/fast}' 'pool-lvm: {fast: vg0/thin}'
  start_volumed
  # The suite's first case may be one that asks for an answer and does not repeat a call.
  wait_until 60 sanity_is_open || fail "the pool is not open: $(volumectl get pools)"
  printf 'backend: lvm\ncsi.storage.k8s.io/fstype: xfs\n' >$lab_state/class.yaml
  printf 'readIOPS: "0"\n' >$lab_state/changes.yaml
  sanity_run "$1" "$2" $lab_state/class.yaml $lab_state/changes.yaml
  # The cut of a clone goes after the answer to whoever made the clone.
  wait_until 60 sanity_lvm_is_empty || fail "left: $(sanity_lvm_left)"
  expect "devices that are left" "$(dmsetup info -c --noheadings -o name | grep -cE -- '-[vs]--' || true)" 0
  say "up for $(now) s"
}
