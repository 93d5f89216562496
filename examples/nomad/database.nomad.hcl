# An allocation with the volume of volume.hcl. It has to be on the client that has the pool, which
# Nomad sees by the plugin's id.
job "database" {
  group "database" {
    volume "data" {
      type            = "csi"
      source          = "database"
      access_mode     = "single-node-writer"
      attachment_mode = "file-system"
    }

    task "database" {
      driver = "docker"

      config {
        image   = "busybox"
        command = "sleep"
        args    = ["infinity"]
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
      }
    }
  }
}
