// A driver that has registered with the table of drivers, in simulated time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "unit/csi/drivers_fixture.h"

namespace volumed {

class RegisteredDriverFixture : public CsiDriversFixture {
 protected:
  void RegisterWell() {
    process_ = Serve();
    const std::optional<Status> status = Register();
    ASSERT_TRUE(status.has_value());
    ASSERT_TRUE(status->ok()) << status->error().ToString();
  }
  std::shared_ptr<FakeCsiProcess> process_;
};

}  // namespace volumed
