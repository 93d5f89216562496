#include "volume/unique_name.h"

namespace volumed {

UniqueVolumeName GetUniqueVolumeName(const std::string& plugin_name,
                                     const std::string& volume_name) {
  return UniqueVolumeName(plugin_name + "/" + volume_name);
}

UniqueVolumeName GetUniqueVolumeNameFromSpecWithPod(const PodUid& pod,
                                                    const std::string& plugin_name,
                                                    const SpecName& spec) {
  return UniqueVolumeName(plugin_name + "/" + pod.str() + "-" + spec.str());
}

Result<UniqueNameParts> SplitUniqueName(const UniqueVolumeName& name) {
  const std::string& text = name.str();
  const size_t first = text.find('/');
  const size_t second = first == std::string::npos ? first : text.find('/', first + 1);
  if (second == std::string::npos) {
    return Error::NotApplied(Code::kInvalidArgument, "cannot split volume unique name " + text +
                                                         " to get plugin/volume names");
  }
  return UniqueNameParts{text.substr(0, second), text.substr(second + 1)};
}

}  // namespace volumed
