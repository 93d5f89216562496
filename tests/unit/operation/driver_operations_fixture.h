// Operations on volumes that a driver with a lane of its own works for, around any plugin.
#pragma once

#include "unit/operation/operation_parts_fixture.h"

namespace volumed {

inline constexpr char kDriverLane[] = "csi:disks.test.io";
inline const UniqueVolumeName kDriverDisk("test.io/array/disk");

class DriverOperationsTest : public OperationPartsFixture {
 protected:
  template <typename Op>
  OperationTraits TraitsOf(const Op& operation) {
    return operation.Traits(Parts());
  }
};

}  // namespace volumed
