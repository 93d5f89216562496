// A node whose pool has a thin pool, for the tests of the backend lvm.
#pragma once

#include <string>
#include <utility>

#include "unit/pool/fake_lvm.h"
#include "unit/pool/pool_cuts_fixture.h"

namespace volumed {

inline PoolSettings LvmTestPool() {
  PoolSettings settings = TestPool();
  settings.lvm = LvmNames{"vg0", "thin"};
  return settings;
}

inline PoolVolumeWish LvmWish(const std::string& name, int64_t bytes = 16 * kMiB) {
  PoolVolumeWish wish = Wish(name, bytes);
  wish.parameters["backend"] = "lvm";
  return wish;
}

inline PoolVolumeWish LvmWishOf(const std::string& name, const VolumeContent& content,
                                int64_t bytes = 16 * kMiB) {
  PoolVolumeWish wish = LvmWish(name, bytes);
  wish.content = content;
  return wish;
}

// What outlives the agents.
struct LvmWorld : PoolCutsWorld {
  explicit LvmWorld(bool has_lvm2 = true) : PoolCutsWorld(false), lvm(kernel, has_lvm2) {}
  void Reboot() {
    lvm.Reboot();
    PoolCutsWorld::Reboot();
  }

  FakeLvm lvm;
};

}  // namespace volumed
