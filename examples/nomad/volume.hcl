# nomad volume create volume.hcl
id           = "database"
name         = "database"
type         = "csi"
plugin_id    = "pool-n1"
capacity_min = "2GiB"
capacity_max = "2GiB"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

mount_options {
  fs_type     = "xfs" # or ext4, or btrfs
  mount_flags = ["noatime"]
}

# What a StorageClass has for Kubernetes (docs/OPERATIONS.md, "Pools").
parameters {
  pool       = "fast"
  allocation = "thin"
}
