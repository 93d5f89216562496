// The volumes of one pool of images on a simulated node, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "pool/pool_volumes.h"
#include "unit/pool/pool_fixture.h"

namespace volumed {

class PoolVolumesTest : public ::testing::Test {
 protected:
  PoolVolumesTest() { StartAgent(); }
  void StartAgent(const std::set<std::string>& used = {}) {
    agent_.reset();
    agent_ = std::make_unique<PoolAgent>(world_);
    recovered_ = agent_->Recover(used);
  }
  PoolVolumes& volumes() { return *agent_->volumes; }
  PoolVolumeRecord Make(const PoolVolumeWish& wish) { return Must(volumes().Create(wish, {})); }
  std::string Unknown() const {
    return NewPoolId(PoolObject::kVolume, agent_->pool().tag()).ToString();
  }
  // The error of what must have failed.
  template <typename T>
  static Error Failure(const Result<T>& result) {
    return result.ok() ? Error::NotApplied(Code::kUnknown, "it has not failed") : result.error();
  }
  template <typename T>
  static Code CodeOf(const Result<T>& result) {
    return Failure(result).code();
  }

  PoolWorld world_;
  std::unique_ptr<PoolAgent> agent_;
  Status recovered_;
};

}  // namespace volumed
