// FlexVolumeDriver: the executable of a flexVolume driver. It is called as an effect, in a worker
// and with a deadline. Source: kubernetes pkg/volume/flexvolume/driver-call.go@v1.36.2
// (DriverCall).
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
// "init", "getvolumename" ... The word is the executable's first argument.
std::string_view FlexCommandName(FlexCommand command);

// The fault domain of a driver's calls: a driver that hangs does not hold up other calls.
// "flexvolume/<driver>". Pure.
std::string FlexFaultDomain(const std::string& driver);

// Threads: any, several at a time. Blocks: until the call's deadline; the driver is then killed
// with everything that it has started, except daemons.
class FlexVolumeDriver {
 public:
  // `name` is "vendor/driver". `kernel` outlives this object. `executable` is an absolute path,
  // which is checked anew before each call.
  FlexVolumeDriver(Kernel& kernel, std::string name, std::string executable)
      : kernel_(kernel), name_(std::move(name)), executable_(std::move(executable)) {}

  const std::string& name() const { return name_; }

  // nullopt if the driver does not support the call; it is then not asked again. No error has
  // secret arguments or their values, even if the driver repeats them.
  // Errors, each naming driver and call:
  //  - Not applied: NotFound if the executable is missing, FailedPrecondition if others than root
  //    may write it (both name the file); those of starting it.
  //  - Internal, with the driver's message, if it says that it has failed, or if its output is
  //    wrong; DeadlineExceeded and Unavailable as of any effect. These are maybe applied, unless
  //    the call only asks (init, getvolumename, isattached).
  Result<std::optional<FlexStatus>> Call(FlexCommand command,
                                         const std::vector<FlexArgument>& arguments,
                                         const CallOptions& call) EXCLUDES(mu_);

  // Like Call, but a driver that is not installed any more counts as one that lacks the call, so
  // that what is mounted can be removed without it.
  Result<std::optional<FlexStatus>> CallIfInstalled(FlexCommand command,
                                                    const std::vector<FlexArgument>& arguments,
                                                    const CallOptions& call) EXCLUDES(mu_);

  // Whether the driver has once answered "Not supported" to this command. A new version of the
  // driver is another object.
  bool IsKnownUnsupported(FlexCommand command) const EXCLUDES(mu_);

  // Checks that the executable, its directory and the directory above it are root's, that no other
  // user may write to them, and that none is a link. Errors, not applied: NotFound and
  // FailedPrecondition, naming the path.
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
