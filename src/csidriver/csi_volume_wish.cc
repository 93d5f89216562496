#include "csidriver/csi_volume_wish.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/byte_text.h"
#include "base/printable_text.h"
#include "base/strings.h"
#include "kube/digest.h"
#include "pool/pool_parameters.h"
#include "pool/pool_plugin.h"
#include "pool/static_backend.h"

namespace volumed {
namespace {

constexpr size_t kShownPlaces = 256;  // bytes of the names of nodes in a message

using ::csi::v1::CreateVolumeRequest;
using ::csi::v1::Topology;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool AreSameKey(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

Error Refused(const std::string& why) { return Error::NotApplied(Code::kInvalidArgument, why); }

std::optional<VolumeContent> ContentOf(const CreateVolumeRequest& request, bool is_block,
                                       const std::string& driver) {
  if (!request.has_volume_content_source()) return std::nullopt;
  const auto& source = request.volume_content_source();
  VolumeContent content;
  content.is_snapshot = source.has_snapshot();
  content.driver = driver;
  content.handle =
      content.is_snapshot ? source.snapshot().snapshot_id() : source.volume().volume_id();
  content.volume_mode = is_block ? VolumeMode::kBlock : VolumeMode::kFilesystem;
  return content;
}

}  // namespace

CsiPlaces CsiPlacesOf(const std::string& driver, const std::string& node,
                      const std::set<std::string>& other_nodes) {
  CsiPlaces places{PoolTopologyLabel(driver), other_nodes};
  places.nodes.insert(node);
  return places;
}

bool IsReachable(const CsiPlaces& places, const Topology& topology) {
  const auto& segments = topology.segments();
  return std::all_of(segments.begin(), segments.end(), [&](const auto& segment) {
    return AreSameKey(segment.first, places.key) && places.nodes.contains(segment.second);
  });
}

// What is preferred is also required, if anything is; alone it is a wish.
Status CheckReachable(const ::csi::v1::TopologyRequirement& requirement, const CsiPlaces& places) {
  const auto& required = requirement.requisite();
  const bool is_met = required.empty() ||
                      std::any_of(required.begin(), required.end(), [&](const Topology& topology) {
                        return IsReachable(places, topology);
                      });
  if (is_met) return OkStatus();
  const std::vector<std::string> nodes(places.nodes.begin(), places.nodes.end());
  return Error::NotApplied(
      Code::kResourceExhausted,
      "accessibility_requirements: none of the places that are required is one of this driver's: " +
          places.key + "=" + Quoted(Join(nodes, ","), kShownPlaces));
}

google::protobuf::RepeatedPtrField<Topology> CsiTopologyOf(const CsiPlaces& places) {
  google::protobuf::RepeatedPtrField<Topology> topology;
  for (const std::string& node : places.nodes) {
    (*topology.Add()->mutable_segments())[places.key] = node;
  }
  return topology;
}

std::string PoolNameOfCsi(const std::string& name) {
  // The specification lets a name have line breaks and tabs, and the pool's names have none.
  return IsText(name) ? "csi:" + name : "csi#" + Sha256Hex(name);
}

bool IsPoolNameOfCsi(std::string_view name) {
  return name.starts_with("csi:") || name.starts_with("csi#");
}

std::string WhyNotInMode(CsiAccessMode mode, const CsiPlaces& places) {
  if (!IsMultiNodeMode(mode) || places.nodes.size() > 1) return "";
  return "a volume of this driver is on one node alone, and " +
         ::csi::v1::VolumeCapability::AccessMode::Mode_Name(mode) + " is for several";
}

std::string WhyNotInMode(const PoolVolumeRecord& volume, CsiAccessMode mode,
                         const CsiPlaces& places) {
  return volume.backend == PoolBackendKind::kExport ? "" : WhyNotInMode(mode, places);
}

Result<StringMap> CsiPoolParameters(const google::protobuf::Map<std::string, std::string>& given,
                                    const std::vector<CsiCapabilityWish>& wishes) {
  StringMap parameters(given.begin(), given.end());
  for (const CsiCapabilityWish& wish : wishes) {
    if (wish.fs_type.empty()) continue;
    const auto [there, is_new] = parameters.emplace(kPoolFsTypeParameter, wish.fs_type);
    if (is_new || there->second == wish.fs_type) continue;
    return Refused("the parameter " + std::string(kPoolFsTypeParameter) +
                   " is not the fs_type of the volume_capabilities, " + wish.fs_type);
  }
  return parameters;
}

Result<PoolVolumeWish> ParseCsiVolumeWish(const CreateVolumeRequest& request,
                                          const CsiPlaces& places, const std::string& driver) {
  ASSIGN_OR_RETURN(const std::vector<CsiCapabilityWish> ways,
                   ParseCsiCapabilities(request.volume_capabilities()));
  for (const CsiCapabilityWish& way : ways) {
    if (std::string why = WhyNotInMode(way.access_mode, places); !why.empty()) return Refused(why);
  }
  RETURN_IF_ERROR(CheckReachable(request.accessibility_requirements(), places));
  PoolVolumeWish wish;
  wish.name = PoolNameOfCsi(request.name());
  wish.size.required_bytes = request.capacity_range().required_bytes();
  wish.size.limit_bytes = request.capacity_range().limit_bytes();
  wish.mutable_parameters = {request.mutable_parameters().begin(),
                             request.mutable_parameters().end()};
  wish.is_block = !ways.empty() && ways.front().is_block;
  wish.content = ContentOf(request, wish.is_block, driver);
  ASSIGN_OR_RETURN(wish.parameters, CsiPoolParameters(request.parameters(), ways));
  return wish;
}

Result<int64_t> ParseCsiGrowth(const ::csi::v1::CapacityRange& range,
                               const PoolVolumeRecord& volume) {
  const int64_t required = range.required_bytes();
  const int64_t limit = range.limit_bytes();
  if (required < 0 || limit < 0 || (limit != 0 && limit < required)) {
    return Refused("capacity_range: a volume cannot have at least " + BytesForPeople(required) +
                   " and at most " + BytesForPeople(limit));
  }
  RETURN_IF_ERROR(CheckListedSize(volume, required));
  int64_t size = volume.capacity_bytes;
  if (required > size) {
    ASSIGN_OR_RETURN(const int64_t wanted, RoundPoolSize(required));
    size = std::max(wanted, volume.target_bytes);
  }
  if (limit == 0 || size <= limit) return size;
  return Error::NotApplied(Code::kOutOfRange, "capacity_range: volume " + volume.id +
                                                  " would have " + BytesForPeople(size) +
                                                  ", and is to have at most " +
                                                  BytesForPeople(limit));
}

::csi::v1::Volume CsiVolumeOf(const PoolVolumeRecord& record, const CsiPlaces& places) {
  ::csi::v1::Volume volume;
  volume.set_volume_id(record.id);
  volume.set_capacity_bytes(record.capacity_bytes);
  *volume.mutable_accessible_topology() = CsiTopologyOf(places);
  if (!record.from_snapshot.empty()) {
    volume.mutable_content_source()->mutable_snapshot()->set_snapshot_id(record.from_snapshot);
  } else if (!record.from_volume.empty()) {
    volume.mutable_content_source()->mutable_volume()->set_volume_id(record.from_volume);
  }
  return volume;
}

}  // namespace volumed
