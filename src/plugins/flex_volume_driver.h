// FlexVolumeDriver: the executable of a flexVolume driver, called as an effect: in a worker, with a
// deadline. Source: kubernetes pkg/volume/flexvolume/driver-call.go@v1.36.2 (DriverCall).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "os/kernel.h"
#include "plugins/flex_volume_options.h"
#include "plugins/flex_volume_status.h"

namespace volumed {

enum class FlexCommand {
  kInit,
  kGetVolumeName,
  kAttach,
  kWaitForAttach,
  kIsAttached,
  kMountDevice,
  kMount,
  kUnmount,
  kUnmountDevice,
  kDetach,
  kExpandVolume,
  kExpandFs,
};
// "init", "getvolumename" ...
std::string_view FlexCommandName(FlexCommand command);

// What the calls of a driver hang together with: one that hangs keeps no other waiting.
std::string FlexFaultDomain(const std::string& driver);

// Threads: any, several at a time. Blocks: until the call's deadline; then the driver is killed
// with all that it has started, but for daemons.
class FlexVolumeDriver {
 public:
  // `name` is "vendor/driver". The kernel outlives this.
  FlexVolumeDriver(Kernel& kernel, std::string name, std::string executable)
      : kernel_(kernel), name_(std::move(name)), executable_(std::move(executable)) {}

  const std::string& name() const { return name_; }

  // nullopt: the driver does not support the call; it is not asked again. Secret arguments, and
  // their values where the driver repeats them, are in no error.
  // Errors, each naming driver and call:
  //  - not applied: NotFound for an executable that is missing, FailedPrecondition for one that may
  //    be written by others than root (each naming the file); those of starting it;
  //  - Internal for what the driver says has failed, with its message, or for what it prints;
  //    DeadlineExceeded, Unavailable as of any effect. Maybe applied, unless the call is one that
  //    only asks (init, getvolumename, isattached).
  Result<std::optional<FlexStatus>> Call(FlexCommand command,
                                         const std::vector<FlexArgument>& arguments,
                                         const CallOptions& call) EXCLUDES(mu_);

  // As Call, but a driver that is not installed any more is as one that lacks the call, so that
  // what is mounted can be taken away without it.
  Result<std::optional<FlexStatus>> CallIfInstalled(FlexCommand command,
                                                    const std::vector<FlexArgument>& arguments,
                                                    const CallOptions& call) EXCLUDES(mu_);

  bool IsKnownUnsupported(FlexCommand command) const EXCLUDES(mu_);

  // Its executable, the directory of it and the one above are root's, and nobody else may write to
  // them; none is a link. Errors, not applied: NotFound and FailedPrecondition, naming the path.
  Status CheckMayBeRun(const CallOptions& call);

 private:
  Status CheckPath(const std::string& path, FileType type, const CallOptions& call);
  Result<std::optional<FlexStatus>> Run(FlexCommand command,
                                        const std::vector<FlexArgument>& arguments,
                                        const CallOptions& call) EXCLUDES(mu_);

  Kernel& kernel_;
  const std::string name_;
  const std::string executable_;
  mutable Mutex mu_;
  std::set<FlexCommand> unsupported_ GUARDED_BY(mu_);
};

}  // namespace volumed
