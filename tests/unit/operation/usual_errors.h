// What steps, kernels and stores of the operations' tests fail with.
#pragma once

#include "base/result.h"

namespace volumed {

inline const Error kRefusal = Error::NotApplied(Code::kInvalidArgument, "refused");
inline const Error kTimedOut = Error::MaybeApplied(Code::kDeadlineExceeded, "no answer");
inline const Error kDiskFull = Error::NotApplied(Code::kResourceExhausted, "disk full");

}  // namespace volumed
