// ObjectDirectoryTest: a directory of applied objects on a real disk, in a directory of the test's
// own, that can be opened anew.
#pragma once

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/simulated_scheduler.h"
#include "fakes/list_mirror.h"
#include "kube/object_directory.h"
#include "unit/kube/kube_testing.h"

namespace volumed {

namespace fs = std::filesystem;

class ObjectDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/volumed-objects-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
    path_ = root_ / "objects";
  }
  void TearDown() override {
    fs::permissions(root_, fs::perms::owner_all);
    fs::remove_all(root_);
  }

  std::unique_ptr<ObjectDirectory> Open() {
    auto directory =
        std::make_unique<ObjectDirectory>(path_.string(), NodeName("n1"), scheduler_, "1.2.3");
    directory->Start([this](ObjectUpdate update) { last_ = mirror_.Take(std::move(update)); });
    Settle();
    return directory;
  }
  // By the next command.
  Result<std::vector<AppliedObject>> Apply(ObjectDirectory& directory,
                                           std::vector<Object> objects) {
    return directory.Apply({std::move(objects), ++number_, {}});
  }
  // As the next command that deletes has it done, once that is on record.
  void Remove(ObjectDirectory& directory, const ObjectKey& key) {
    directory.Remove(key, ++number_);
  }
  void Settle() { ASSERT_TRUE(scheduler_.RunUntilIdle(std::chrono::seconds(1))); }
  std::string Names() {
    Settle();
    std::string names;
    for (const auto& object : last_.objects) names += MetaOf(*object.object).name + " ";
    return names;
  }
  static mode_t ModeOf(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  SimulatedScheduler scheduler_{1};
  fs::path root_;
  fs::path path_;
  ListMirror mirror_{ListMirror::Order::kByName};
  ObjectList last_;
  uint64_t number_ = 0;
};

}  // namespace volumed
