// Whatever PoolVolumes has done to a volume has the lock of its id, so that a worker that outlives
// its agent is not overtaken by the next one's.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "unit/pool/pool_fixture.h"

namespace volumed {
namespace {

// Notes of each request below the pool's volumes which keys it has.
class KeyedKernel final : public Kernel {
 public:
  explicit KeyedKernel(Kernel& real) : real_(real) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const std::string path = RequestPath(request);
    const std::string volumes = kPoolPath + "/volumes/";
    // Whoever only asks how large a volume is has no need of it.
    if (path.starts_with(volumes) && !std::holds_alternative<Stat>(request)) {
      std::vector<std::string> keys = options.more_keys;
      keys.push_back(options.key);
      const std::string id =
          path.substr(volumes.size(), path.find('/', volumes.size()) - volumes.size());
      requests_[std::string(RequestName(request))] += 1;
      if (std::find(keys.begin(), keys.end(), id) == keys.end()) {
        unlocked_.push_back(std::string(RequestName(request)) + " " + path);
      }
    }
    return real_.Do(request, options);
  }
  int Count(const std::string& request) const {
    const auto count = requests_.find(request);
    return count == requests_.end() ? 0 : count->second;
  }
  const std::vector<std::string>& unlocked() const { return unlocked_; }

 private:
  Kernel& real_;
  std::map<std::string, int> requests_;
  std::vector<std::string> unlocked_;
};

// The life of a volume, in calls with this key.
void ExpectAllLocked(const std::string& key) {
  PoolWorld world;
  KeyedKernel kernel(world.kernel);
  ManualClock clock;
  Logger log({.target = LogOptions::Target::kCallback, .callback = {}}, clock);
  FakeIrreversibleSteps irreversible;
  std::vector<std::unique_ptr<Pool>> pools;
  pools.push_back(std::make_unique<Pool>(TestPool(), kernel, world.store, clock, log));
  PoolVolumes volumes({world.store, kernel, clock, log, irreversible}, std::move(pools));
  ASSERT_TRUE(volumes.Recover([](const std::string&) { return false; }, {}).ok());
  CallOptions call;
  call.key = key;
  const std::string id = Must(volumes.Create(Wish("pvc-1"), call)).id;
  ASSERT_TRUE(volumes.Open(id, /*read_only=*/false, call).ok());
  ASSERT_TRUE(volumes.Expand(id, 32 * kMiB, call).ok());
  ASSERT_TRUE(volumes.Close(id, call).ok());
  ASSERT_TRUE(volumes.Delete(id, /*only_unused=*/false, call).ok());
  EXPECT_EQ(kernel.unlocked(), std::vector<std::string>());
  for (const char* request : {"MakeDirectory", "WriteFile", "SetFileSize", "AttachLoop",
                              "DetachLoops", "RemoveFile", "RemoveDirectory"}) {
    EXPECT_GT(kernel.Count(request), 0) << request;
  }
}

TEST(PoolVolumesKeys, WhateverIsDoneToAVolumeHasTheLockOfItsId) {
  ExpectAllLocked("");
  ExpectAllLocked("the key of an operation");
}

}  // namespace
}  // namespace volumed
