// Must(): the value of a Result in a helper that returns one, where ASSERT_TRUE cannot stand. A
// failure ends the test that called the helper, with the error's text, and no other test.
#pragma once

#include <stdexcept>
#include <utility>

#include "base/result.h"

namespace volumed {

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().ToString());
  return std::move(result).value();
}

}  // namespace volumed
