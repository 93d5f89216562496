// The places that a CO names, as this program takes them: a staging path, at which a volume is on
// the node once, and a target path, at which a user of it has it. A path becomes a place below one
// of the directories in which a CO may put volumes (csi-target-roots), and a place is found again
// by its path in the rows of the volume.
//
// Links on the way to such a directory are followed, so that a place is named as the mount table
// has it. No link is followed below one, and nothing is looked at here: what a path leads to is
// decided when an effect opens it. All are pure but for what a NodeTargets was given; threads: any.
// Blocks: never.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operation/volume_record.h"
#include "os/safe_path.h"

namespace volumed {

// The one form in which a path is compared and kept: a CO may write a "/" twice, or at the end.
// Nullopt for a path that is not absolute, has a NUL, has "." or ".." as a name, or has no name.
std::optional<std::string> CleanNodePath(std::string_view path);

// The path in quotes, for a message.
std::string ShownPath(const std::string& path);

// A value.
class NodeTargets {
 public:
  // Where a root is without links; the root itself if it is not known, or is "/".
  using RealRoot = std::function<std::string(const std::string& root)>;

  // `roots` are absolute and clean, and none of them is "/". `real` is asked for each of them, each
  // time; empty: there are no links.
  explicit NodeTargets(std::vector<std::string> roots, RealRoot real = nullptr);

  // The place of the path, which has the root as it is configured, or as it is without links; the
  // place has the latter. `field` is for people: "target_path". Errors: InvalidArgument, not
  // applied, for a path that CleanNodePath() does not take, for one outside of all roots, and for a
  // root itself, or what a root lies in: a volume there would hide all others.
  Result<SafePath> PlaceOf(std::string_view field, const std::string& path) const;

  // The path as the place of it has it; the path itself if it lies below no root. `clean` is clean.
  std::string RealPath(const std::string& clean) const;

 private:
  struct Way {
    std::string path;  // by which a CO may name the root
    std::string real;  // the root
  };
  // The one that lies in another one comes first.
  std::vector<Way> Ways() const;

  const std::vector<std::string> roots_;
  const RealRoot real_;
};

// What a CO has of a volume at one path, by the rows.
struct NodePlace {
  SafePath place;
  bool is_staging = false;  // it is where the volume is staged
  bool is_block = false;
  bool is_finished = false;  // it is there; else it is on its way there, or away
  std::string fault_domain = {};
  // As makedev(3) has it: which device has to be at the place, as no row has the place; 0: one has.
  uint64_t device_number = 0;
};

// Something of it is at the CO's place, or may be. Nullopt for a row of a pod's volume, and for one
// of which nothing is left.
std::optional<NodePlace> NodePlaceOf(const DeviceRecord& staged);
std::optional<NodePlace> NodePlaceOf(const PodVolumeRecord& published);

// A place at which somebody else may have bound the device of this block volume, which was
// published from there: a kubelet binds it, for each pod, below its own directory of the volume,
// and asks what is there by that. Nullopt, if the volume has no device that is known in this boot.
// Source: kubernetes pkg/volume/csi/csi_block.go (MapPodDevice), csi_metrics.go@v1.36.
std::optional<NodePlace> BoundDevicePlace(const DeviceRecord& staged, SafePath place);

// The one of the two that is at this path; nullopt: none is. `path` is clean.
std::optional<NodePlace> FindNodePlace(const std::string& path,
                                       const std::optional<DeviceRecord>& staged,
                                       const std::optional<PodVolumeRecord>& published);

}  // namespace volumed
