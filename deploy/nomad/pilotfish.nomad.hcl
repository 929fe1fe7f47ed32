# A submitter with pilotfish as a sidecar in one group: pilotfish starts first and
# stops last, so that the submitter never finds a closed port.
#
#   nomad job run -var submitter_image=... deploy/nomad/pilotfish.nomad.hcl
#
# Both tasks use the client's own network: the Consul agent is on its loopback
# address, and Consul and Prometheus connect to the admin port without address
# translation. The job port stays on loopback; every process of the
# client can use it, because the group has no network namespace.

variable "pilotfish_image" {
  type    = string
  default = "pilotfish:latest"
}

variable "submitter_image" {
  type        = string
  default     = "submitter:latest"
  description = "Whatever posts jobs; it finds pilotfish through PILOTFISH_URL."
}

job "submitter" {
  datacenters = ["*"]
  type        = "service"

  update {
    health_check     = "checks"
    min_healthy_time = "10s"
    auto_revert      = true
  }

  group "submitter" {
    count = 2

    network {
      mode = "host"
      # The usual port. Nomad can place only one such group on each client; without "static", it chooses a port.
      port "jobs" { static = 8080 }
      port "admin" {}
    }

    ephemeral_disk {
      sticky = true # keeps the snapshot when the allocation is replaced on this client
    }

    task "pilotfish" {
      driver = "docker"
      user   = "65532:65532"

      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

      # Longer than shutdown.grace, so that accepted jobs can end. The client's
      # max_kill_timeout, by default 30s, must be at least as long.
      kill_signal  = "SIGTERM"
      kill_timeout = "130s"

      config {
        image           = var.pilotfish_image
        args            = ["serve", "--config", "${NOMAD_TASK_DIR}/pilotfish.yaml"]
        network_mode    = "host"
        readonly_rootfs = true
        cap_drop        = ["all"]
        security_opt    = ["no-new-privileges"]
      }

      # A change is applied by SIGHUP; an invalid file changes nothing.
      template {
        destination   = "local/pilotfish.yaml"
        perms         = "0444"
        change_mode   = "signal"
        change_signal = "SIGHUP"
        data          = <<-YAML
          listen: 127.0.0.1:{{ env "NOMAD_PORT_jobs" }}
          admin: {{ env "NOMAD_ADDR_admin" }}
          discovery:
            consul:
              address: 127.0.0.1:8500
              service: ruleserver
              # With ACLs, give the task an identity for Consul, and set its token here:
              # token_file: {{ env "NOMAD_SECRETS_DIR" }}/consul_token
            snapshot: {{ env "NOMAD_ALLOC_DIR" }}/data/upstreams.json
          shutdown: {grace: 2m}
        YAML
      }

      service {
        name     = "pilotfish"
        provider = "consul"
        port     = "admin"
        meta {
          alloc = "${NOMAD_SHORT_ALLOC_ID}"
        }

        # A sidecar that does not respond is restarted.
        check {
          name     = "alive"
          type     = "http"
          path     = "/healthz"
          interval = "10s"
          timeout  = "2s"
          check_restart {
            limit = 3
            grace = "30s"
          }
        }

        # A sidecar without upstreams is not restarted, because that would not help.
        check {
          name     = "ready"
          type     = "http"
          path     = "/readyz"
          interval = "5s"
          timeout  = "2s"
        }
      }

      resources {
        cpu    = 500 # MHz
        memory = 512 # MB
      }
    }

    task "submitter" {
      driver = "docker"

      kill_timeout = "60s"

      config {
        image        = var.submitter_image
        network_mode = "host"
      }

      env {
        PILOTFISH_URL = "http://127.0.0.1:${NOMAD_PORT_jobs}"
      }

      resources {
        cpu    = 500
        memory = 256
      }
    }
  }
}
