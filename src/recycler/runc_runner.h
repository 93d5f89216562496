// RuncRunner: containers by runc, with busybox as their whole root filesystem. No network, no
// capabilities but those that deleting other users' files takes, a root that cannot be written.
// Source: opencontainers/runtime-spec config.md (v1.0).
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "recycler/container_runner.h"

namespace volumed {

struct RuncOptions {
  std::string runc = "/usr/sbin/runc";
  std::string busybox = "/bin/busybox";  // statically linked
  // Bundles and runc's own state; made 0700 when first needed. The agent's own directory.
  std::string directory;
};

// Threads, Blocks: as ContainerRunner. Errors: FailedPrecondition, not applied, naming the program
// and its Debian package, if one is missing, whatever is asked; FailedPrecondition, maybe applied,
// if a sandbox forbids containers, naming what allows them; Unavailable with what runc has said.
class RuncRunner final : public ContainerRunner {
 public:
  // Both outlive this. runc runs as an effect, in a worker: there it is killed at the deadline, and
  // left to itself, and counted, if it cannot be.
  RuncRunner(RuncOptions options, Kernel& kernel, const Clock& clock);

  Result<bool> Exists(const std::string& id, const CallOptions& call) override;
  Result<ContainerEnd> Run(const ContainerRun& run, const CallOptions& call) override;
  Status Remove(const std::string& id, const CallOptions& call) override;

 private:
  std::string BundleOf(const std::string& id) const;
  Status CheckPrograms() const;
  Status MakeBundle(const ContainerRun& run) const;
  Result<ProgramEnd> Runc(std::vector<std::string> arguments, const CallOptions& call) const;

  const RuncOptions options_;
  Kernel& kernel_;
  const Clock& clock_;
};

// config.json of a bundle, for tests.
std::string OciConfig(const ContainerRun& run);

}  // namespace volumed
