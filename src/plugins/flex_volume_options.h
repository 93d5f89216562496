// The options that a flexVolume driver gets: one JSON object of texts with kubelet's keys. An
// option of the volume wins over one of the agent.
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

// What inline and persistent flexVolumes share. REQUIRES: the spec is a flexVolume.
struct FlexSource {
  std::string driver;
  std::string fs_type;
  bool read_only = false;
  std::map<std::string, std::string> options;
};
// Read-only is the source's own word for an inline volume, the claim's for a persistent one.
FlexSource FlexSourceOf(const VolumeSpec& spec);

// The name of the volume for its driver and on the node. A persistent volume has its own name. The
// name of an inline volume is unique only in its pod, so a digest of its options is appended: pods
// whose volumes have one name and different options do not get each other's volumes. (In kubelet
// they do.) REQUIRES: the spec is a flexVolume.
std::string FlexVolumeName(const VolumeSpec& spec);

// An argument of a driver. An argument with secrets may be shown only to the driver.
struct FlexArgument {
  FlexArgument(std::string plain) : text(std::move(plain)) {}  // NOLINT: an argument is a text

  std::string text;  // with secrets: the text that is shown instead
  std::optional<Secret<std::string>> secret;
  // What must not be shown even if the driver repeats it: each secret as it is, and as it is sent.
  std::vector<Secret<std::string>> secrets;
};

// The options of all calls but `mount`.
FlexArgument FlexOptions(const VolumeSpec& spec);

// The options of `mount`: the pod's names, its fsGroup, and the values of the volume's secret in
// base64. The key of the group is "kubernetes.io/mounterArgs.FsGroup", as drivers know it from
// kubelet.
// Errors: those of HostObjects, with the secret's name; FailedPrecondition, not applied, if the
// type of the secret is not the driver's name. The secret of an inline volume is one of the pod's
// namespace; so is that of a persistent volume which names no namespace. A secret without a name
// counts as none.
Result<FlexArgument> FlexMountOptions(const VolumeSpec& spec, const Pod& pod,
                                      const std::optional<int64_t>& fs_group,
                                      const HostObjects& objects);

}  // namespace volumed
