#include "csidriver/csi_volume_wish.h"

#include <algorithm>

#include "base/printable_text.h"
#include "kube/digest.h"
#include "pool/pool_parameters.h"

namespace volumed {
namespace {

using ::csi::v1::CreateVolumeRequest;
using ::csi::v1::Topology;
using ::csi::v1::TopologyRequirement;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool AreSameKey(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

Error Refused(const std::string& why) { return Error::NotApplied(Code::kInvalidArgument, why); }

// What is preferred is also required, if anything is; alone it is a wish.
Status CheckReachable(const TopologyRequirement& requirement, const CsiPlaces& places) {
  const auto& required = requirement.requisite();
  const bool is_met = required.empty() ||
                      std::any_of(required.begin(), required.end(), [&](const Topology& topology) {
                        return IsReachable(places, topology);
                      });
  if (is_met) return OkStatus();
  return Error::NotApplied(Code::kResourceExhausted,
                           "accessibility_requirements: no volume of this driver can be reached "
                           "from any place that is required");
}

Status CheckTaken(const CreateVolumeRequest& request) {
  if (request.has_volume_content_source()) {
    return Refused(
        "volume_content_source: this driver makes empty volumes only, and none from a snapshot or "
        "from another volume");
  }
  return OkStatus();
}

}  // namespace

bool IsReachable(const CsiPlaces& places, const Topology& topology) {
  const auto& segments = topology.segments();
  return std::all_of(segments.begin(), segments.end(), [&](const auto& segment) {
    return AreSameKey(segment.first, places.key) && places.nodes.contains(segment.second);
  });
}

std::string PoolNameOfCsi(const std::string& name) {
  // The specification lets a name have line breaks and tabs, and the pool's names have none.
  return IsText(name) ? "csi:" + name : "csi#" + Sha256Hex(name);
}

std::string WhyNotInMode(CsiAccessMode mode, const CsiPlaces& places) {
  if (!IsMultiNodeMode(mode) || places.nodes.size() > 1) return "";
  return "a volume of this driver is on one node alone, and " +
         ::csi::v1::VolumeCapability::AccessMode::Mode_Name(mode) + " is for several";
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
                                          const CsiPlaces& places) {
  RETURN_IF_ERROR(CheckTaken(request));
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
  ASSIGN_OR_RETURN(wish.parameters, CsiPoolParameters(request.parameters(), ways));
  return wish;
}

Result<int64_t> ParseCsiGrowth(const ::csi::v1::CapacityRange& range,
                               const PoolVolumeRecord& volume) {
  const int64_t required = range.required_bytes();
  const int64_t limit = range.limit_bytes();
  if (required < 0 || limit < 0 || (limit != 0 && limit < required)) {
    return Refused("capacity_range: a volume cannot have at least " + std::to_string(required) +
                   " and at most " + std::to_string(limit) + " bytes");
  }
  int64_t size = volume.capacity_bytes;
  if (required > size) {
    ASSIGN_OR_RETURN(const int64_t wanted, RoundPoolSize(required));
    size = std::max(wanted, volume.target_bytes);
  }
  if (limit == 0 || size <= limit) return size;
  return Error::NotApplied(Code::kOutOfRange, "capacity_range: volume " + volume.id +
                                                  " would have " + std::to_string(size) +
                                                  " bytes, and is to have at most " +
                                                  std::to_string(limit));
}

::csi::v1::Volume CsiVolumeOf(const PoolVolumeRecord& record, const CsiPlaces& places) {
  ::csi::v1::Volume volume;
  volume.set_volume_id(record.id);
  volume.set_capacity_bytes(record.capacity_bytes);
  for (const std::string& node : places.nodes) {
    (*volume.add_accessible_topology()->mutable_segments())[places.key] = node;
  }
  return volume;
}

}  // namespace volumed
