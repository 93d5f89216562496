#include "csi/csi_capability_names.h"

#include <google/protobuf/descriptor.h>

#include "csi.pb.h"

namespace volumed {
namespace {

void Append(const google::protobuf::EnumDescriptor& words, const std::vector<int32_t>& numbers,
            const std::string& before, std::vector<std::string>& names) {
  for (const int32_t number : numbers) {
    const auto* const word = words.FindValueByNumber(number);
    names.push_back(before + (word == nullptr ? std::to_string(number) : word->name()));
  }
}

}  // namespace

std::vector<std::string> PluginCapabilityNames(const CsiDriverFacts& facts) {
  std::vector<std::string> names;
  Append(*::csi::v1::PluginCapability::Service::Type_descriptor(), facts.plugin_capabilities, "",
         names);
  Append(*::csi::v1::PluginCapability::VolumeExpansion::Type_descriptor(), facts.expansion,
         "expansion ", names);
  return names;
}

std::vector<std::string> NodeCapabilityNames(const CsiDriverFacts& facts) {
  std::vector<std::string> names;
  Append(*::csi::v1::NodeServiceCapability::RPC::Type_descriptor(), facts.node_capabilities, "",
         names);
  return names;
}

std::vector<std::string> ControllerCapabilityNames(const CsiDriverFacts& facts) {
  std::vector<std::string> names;
  Append(*::csi::v1::ControllerServiceCapability::RPC::Type_descriptor(),
         facts.controller_capabilities, "", names);
  return names;
}

}  // namespace volumed
