// Secret<T>: a value that cannot be printed, logged, compared or stored by accident.
#pragma once

#include <utility>

namespace volumed {

// There is deliberately no operator<<, no conversion, no serialisation, no equality. Reveal() is
// the one way out and easy to grep for; its caller is where a leak would be. It may be copied, and
// its memory is not wiped.
// Threads: as T.
template <typename T>
class Secret {
 public:
  Secret() = default;
  explicit Secret(T value) : value_(std::move(value)) {}

  // The reference is valid as long as this Secret and is to be copied nowhere that outlives the
  // use.
  const T& Reveal() const { return value_; }

 private:
  T value_;
};

}  // namespace volumed
