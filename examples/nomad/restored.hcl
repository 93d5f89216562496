# A volume with what was in a snapshot of another one:
#   nomad volume snapshot create database before-the-change    says the snapshot's id
#   nomad volume create restored.hcl                           with that id below
id           = "database-restored"
name         = "database-restored"
type         = "csi"
plugin_id    = "pool-n1"
snapshot_id  = "ID-OF-THE-SNAPSHOT" # or clone_id, the external id of a volume
capacity_min = "2GiB"
capacity_max = "2GiB"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

mount_options {
  fs_type = "xfs"
}

parameters {
  pool = "fast"
}
