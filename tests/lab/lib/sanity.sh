# csi-sanity, asked of the agent's own driver; sourced after volumed.sh, by a test that needs csi-sanity.
#   sanity_lvm mount|block       all its cases on thin logical volumes, of which nothing is left; with filesystems or raw
#   sanity_configure LINE...     what it needs of the configuration, beside these lines; of a pool with room for some
#                                volumes of 512 MiB at a time
#   sanity_run mount|block FILE CHANGES    all its cases, with filesystems or raw; FILE has the parameters of a class, and
#                                CHANGES those that ControllerModifyVolume is asked for. What it says is in /lab/out.
sanity_at=/srv/sanity
# Of the 103 cases of 5.6.0; one of them is pending in every run.
sanity_all="102 Passed | 0 Failed | 1 Pending | 0 Skipped"

sanity_configure() {
  mkdir -p $sanity_at
  configure "$@" "csi-serve: $sanity_at/csi.sock" 'csi-profile: central' 'csi-serve-level: "1.13"' 'csi-max-volumes: 3' \
    "csi-target-roots: [$sanity_at]" 'node-name: n1'
}

sanity_run() {
  local access=$1 report=/lab/out/sanity-$1.log status=0 from
  from=$(now)
  /lab/csi-sanity --csi.endpoint=$sanity_at/csi.sock --csi.mountdir=$sanity_at/mount --csi.stagingdir=$sanity_at/stage \
    --csi.testvolumeaccesstype="$access" --csi.testvolumesize=$((384 << 20)) --csi.testvolumeexpandsize=$((512 << 20)) \
    --csi.testvolumeparameters="$2" --csi.testvolumemutableparameters="$3" \
    --csi.testnodevolumeattachlimit --ginkgo.no-color --ginkgo.v >"$report" 2>&1 || status=$?
  say "csi-sanity, $access: $(since "$from") s"
  ((status == 0)) || fail "csi-sanity, $access: $(grep -A 12 -F -e '[FAILED]' -e '[PANICKED]' "$report" | head -n 80)"
  expect "csi-sanity, $access" "$(sed -n 's/.* -- \([0-9]* Passed.*\)/\1/p' "$report" | tail -n 1)" "$sanity_all"
}

sanity_lvm_left() {
  lvs --noheadings -o lv_name --select 'lv_name=~"^[vs]-"' vg0 | tr -d ' '
  ls /srv/fast/volumes /srv/fast/cuts -A1 | sed '/^$/d; /:$/d'
}
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
  printf 'backend: lvm\ncsi.storage.k8s.io/fstype: xfs\n' >$lab_state/class.yaml
  printf 'readIOPS: "0"\n' >$lab_state/changes.yaml
  sanity_run "$1" $lab_state/class.yaml $lab_state/changes.yaml
  # The cut of a clone goes after the answer to whoever made the clone.
  wait_until 60 sanity_lvm_is_empty || fail "left: $(sanity_lvm_left)"
  expect "devices that are left" "$(dmsetup info -c --noheadings -o name | grep -cE -- '-[vs]--' || true)" 0
  say "up for $(now) s"
}
