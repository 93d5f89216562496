// How often plugins are asked which volumes are attached, unless a setting says otherwise.
#pragma once

#include "base/clock.h"

namespace volumed {

// Source: kubernetes pkg/controller/volume/attachdetach/config/v1alpha1/defaults.go@v1.36.2
// (ReconcilerSyncLoopPeriod).
inline constexpr Duration kVerifyAttachedPeriod = std::chrono::seconds(60);

}  // namespace volumed
