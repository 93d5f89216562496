#include "fakes/fake_flex_driver.h"

#include <vector>

#include <nlohmann/json.hpp>

namespace volumed {
namespace {

constexpr char kAttached[] = "/srv/flex/";  // the volume's name below it; its device within

ProgramEnd Say(const std::string& status, const std::string& device = "", bool attached = false) {
  const nlohmann::json answer = {{"status", status}, {"device", device}, {"attached", attached}};
  return {status == "Success" ? 0 : 1, answer.dump()};
}

ProgramEnd Run(FakeKernel& world, const std::vector<std::string>& words) {
  const std::string& call = words.at(1);
  if (call == "init") return Say("Success");
  if (call == "attach") {
    const std::string disk = FlexOption(words.at(2), "disk");
    world.AddFile(kAttached + FlexOption(words.at(2), "kubernetes.io/pvOrVolumeName"), disk);
    if (!world.Exists(disk)) world.ReturnDeviceNode(disk);
    return Say("Success", disk);
  }
  if (call == "waitforattach") {
    return Say(world.Exists(words.at(2)) ? "Success" : "Failure", words.at(2));
  }
  if (call == "isattached") {
    const std::string volume = FlexOption(words.at(2), "kubernetes.io/pvOrVolumeName");
    return Say("Success", "", IsFlexAttached(world, volume));
  }
  if (call == "detach") {
    if (!IsFlexAttached(world, words.at(2))) return Say("Success");
    const std::string disk = world.Find(kAttached + words.at(2)).content;
    if (world.Exists(disk)) world.Remove(disk);
    world.Remove(kAttached + words.at(2));
    return Say("Success");
  }
  return Say("Not supported");
}

}  // namespace

void InstallFakeFlexDriver(FakeKernel& kernel) {
  kernel.AddDirectory("/srv/flex");
  kernel.AddProgram(kFakeFlexExecutable, &Run);
}

bool IsFlexAttached(const FakeKernel& kernel, const std::string& volume) {
  return kernel.Exists(kAttached + volume);
}

std::string FlexOption(const std::string& options, const std::string& key) {
  const auto json = nlohmann::json::parse(options, nullptr, false);
  return json.is_object() ? json.value(key, "") : "";
}

}  // namespace volumed
