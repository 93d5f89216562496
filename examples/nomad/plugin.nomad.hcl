# volumed as a CSI plugin of the Nomad client n1. Each client with a pool has a job of its own, with an
# id of its own: Nomad sends the calls of a controller to any client that runs the plugin, and a pool
# is on one node.
job "volumed-n1" {
  type = "system"

  constraint {
    attribute = "${node.unique.name}"
    value     = "n1"
  }

  group "volumed" {
    task "volumed" {
      # On the host itself, as root: mounts have to be seen by the tasks that use the volumes.
      driver = "raw_exec"

      config {
        command = "/usr/local/bin/volumed"
        args    = ["run", "--config", "/etc/volumed/nomad.yaml"]
      }

      csi_plugin {
        id   = "pool-n1"
        type = "monolith"
        # A task of raw_exec has no directories of its own, so that Nomad has to name the places of
        # volumes as the host has them: DATA_DIR/client/csi/monolith/ID.
        stage_publish_base_dir = "/opt/nomad/data/client/csi/monolith/pool-n1"
        health_timeout         = "1m"
      }

      # It keeps all of its state, and the workloads their volumes, so that it may start again at once.
      restart {
        attempts = 10
        interval = "5m"
        delay    = "1s"
        mode     = "delay"
      }

      resources {
        cpu    = 200
        memory = 256
      }
    }
  }
}
