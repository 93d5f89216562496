#include "plugins/flex_volume_places.h"

#include "base/strings.h"

namespace volumed {
namespace {

constexpr char kAllDrivers[] = "kubernetes.io/flexvolume";
constexpr size_t kAllDriversElements = 2;

}  // namespace

SafePath FlexDeviceMountDir(const KubeletPaths& paths, const std::string& driver,
                            const SpecName& volume) {
  return paths.GetDeviceMountDir(std::string(kAllDrivers) + "/" + driver, volume);
}

std::optional<KubeletPaths::DeviceMount> FlexDeviceAt(const std::vector<std::string>& elements) {
  const size_t size = elements.size();
  if (size < kAllDriversElements + 3 || elements[size - 2] != "mounts" ||
      elements[0] + "/" + elements[1] != kAllDrivers) {
    return std::nullopt;
  }
  const std::vector<std::string> driver(elements.begin() + kAllDriversElements, elements.end() - 2);
  return KubeletPaths::DeviceMount{Join(driver, "/"), SpecName(elements.back()), false};
}

}  // namespace volumed
