// The options that a flexVolume driver is given: one JSON object of texts, by kubelet's keys. What
// the volume's own options say stands before what the agent says.
// Source: kubernetes pkg/volume/flexvolume/driver-call.go@v1.36.2 (NewOptionsForDriver) and util.go
// (addSecretsToOptions).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "kube/objects.h"
#include "volume/volume_spec.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: any. Blocks: never.

// What an inline and a persistent flexVolume have in common. REQUIRES: the spec is one.
struct FlexSource {
  std::string driver;
  std::string fs_type;
  bool read_only = false;
  std::map<std::string, std::string> options;
};
FlexSource FlexSourceOf(const VolumeSpec& spec);

// What the volume is called to its driver and on the node: a persistent volume by its name. The
// name of an inline one is of its pod alone, and is followed by a digest of what the driver is told
// of it: pods whose volumes have one name and different options do not get each other's. (In
// kubelet they do.) REQUIRES: the spec is one.
std::string FlexVolumeName(const VolumeSpec& spec);

// An argument of a driver. One with secrets may be shown to nobody but the driver.
struct FlexArgument {
  FlexArgument(std::string plain) : text(std::move(plain)) {}  // NOLINT: an argument is a text

  std::string text;  // with secrets: what is shown in its place
  std::optional<Secret<std::string>> secret;
  // What must not be shown although the driver repeats it: each secret as it is, and as it is sent.
  std::vector<Secret<std::string>> secrets;
};

// Of all calls but `mount`.
FlexArgument FlexOptions(const VolumeSpec& spec);

// Of `mount`: the pod's names, its fsGroup, and the values of the volume's secret in base64. The
// key of the group is "kubernetes.io/mounterArgs.FsGroup", as drivers know it from kubelet.
// Errors: those of HostObjects, with the secret's name; FailedPrecondition, not applied, for a
// secret whose type is not the driver's name.
Result<FlexArgument> FlexMountOptions(const VolumeSpec& spec, const Pod& pod,
                                      const std::optional<int64_t>& fs_group,
                                      const HostObjects& objects);

}  // namespace volumed
