// Names that must not be mixed up, each a type of its own. All are values; threads: any.
#pragma once

#include <compare>
#include <functional>
#include <ostream>
#include <string>
#include <utility>

namespace volumed {

// A string that converts from and to std::string only when asked. Any bytes are taken: what a name
// may look like is checked where it comes in. It is ordered as its text is, and empty by default.
template <typename Tag>
class StrongId {
 public:
  StrongId() = default;
  explicit StrongId(std::string value) : value_(std::move(value)) {}

  const std::string& str() const { return value_; }
  bool empty() const { return value_.empty(); }

  friend auto operator<=>(const StrongId&, const StrongId&) = default;
  friend std::ostream& operator<<(std::ostream& out, const StrongId& id) {
    return out << id.value_;
  }

 private:
  std::string value_;
};

// metadata.uid of the pod. Its directory has this name, so two pods of one name are two.
using PodUid = StrongId<struct PodUidTag>;
// Identity of a volume on this node. Source: kubelet's v1.UniqueVolumeName.
using UniqueVolumeName = StrongId<struct UniqueVolumeNameTag>;
// Name of a VolumeSpec: the inline volume's name or the PV's. The last element of a volume's path.
using SpecName = StrongId<struct SpecNameTag>;
using NodeName = StrongId<struct NodeNameTag>;
// /proc/sys/kernel/random/boot_id: a record of another boot says nothing about the kernel's state.
using BootId = StrongId<struct BootIdTag>;

// A volume of a pod, or of whoever else it is made for (VolumeTarget): the key of its operations,
// its record and its views.
struct PodVolumeKey {
  PodUid pod;
  SpecName spec;
  friend auto operator<=>(const PodVolumeKey&, const PodVolumeKey&) = default;
  // "<uid>/<name>", for logs, keys and messages.
  std::string ToString() const { return pod.str() + "/" + spec.str(); }
};

}  // namespace volumed

template <typename Tag>
struct std::hash<volumed::StrongId<Tag>> {
  size_t operator()(const volumed::StrongId<Tag>& id) const noexcept {
    return std::hash<std::string>()(id.str());
  }
};
