// The fixture of the tests of what the manifest directory makes of absence: the law of
// docs/OBJECTS.md, sentence by sentence, on real files.
#pragma once

#include <string>
#include <vector>

#include "unit/kube/manifest_directory_fixture.h"

namespace volumed {

class ManifestAbsenceTest : public ManifestDirectoryTest {
 protected:
  static std::string Map(const std::string& name, const std::string& value = "1") {
    return ConfigMapYaml(name, value);
  }
  static std::string Pair(const std::string& a, const std::string& b) {
    return Map(a) + "---\n" + Map(b);
  }
  // Present are the objects of these files, and the source is in order.
  void HaveFiles(const std::vector<std::string>& names) {
    fs::create_directories(directory_);
    for (const std::string& name : names) Write(name + ".yaml", PodYaml(name, "uid-" + name));
    Start();
    RunUntil([&] {
      for (const std::string& name : names) {
        if (StateOf(name) != "present") return false;
      }
      return last_->complete;
    });
    EXPECT_EQ(last_->incomplete_because, "");
  }
  void ExpectHeld(const std::string& name, const std::string& why) {
    RunUntil([&] { return StateOf(name) == "held"; });
    EXPECT_NE(ReasonOf(name).find(why), std::string::npos) << ReasonOf(name);
    EXPECT_NE(last_->incomplete_because.find(why), std::string::npos) << last_->incomplete_because;
    EXPECT_TRUE(last_->complete);
    // Much longer than the settle time.
    RunFor(5 * settle_);
    EXPECT_EQ(StateOf(name), "held") << name;
  }
};

}  // namespace volumed
