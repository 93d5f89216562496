// Quantity: an amount of a resource as Kubernetes writes it: "500m", "1.5Gi", "2e3". Exact.
// Source: k8s.io/apimachinery pkg/api/resource/quantity.go@v0.36 (Quantity).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace volumed {

// A value; whole billionths, at most 2^63-1 units either way. Threads: any. Blocks: never.
//
// Two quantities are equal when they are the same number, however they were written.
class Quantity {
 public:
  // How String() writes it; Parse takes it from the suffix. It is no part of the amount.
  enum class Format {
    kDecimalSi,        // n u m "" k M G T P E
    kBinarySi,         // Ki Mi Gi Ti Pi Ei
    kDecimalExponent,  // e3, E-2
  };

  // Zero.
  Quantity() = default;

  // sign? digits ("." digits?)? suffix, or sign? "." digits suffix. What is finer than a billionth
  // is rounded away from zero, as Kubernetes does.
  // Errors (NotApplied): InvalidArgument for anything else; OutOfRange beyond 2^63-1 in magnitude
  // (Kubernetes silently takes the limit instead, which would grant what nobody asked for).
  static Result<Quantity> Parse(std::string_view text);
  // -2^63, which alone is out of range, becomes -(2^63-1).
  static Quantity FromInteger(int64_t value, Format format = Format::kDecimalSi);
  // As sizes of volumes are written: with binary suffixes.
  static Quantity FromBytes(int64_t bytes) { return FromInteger(bytes, Format::kBinarySi); }
  static Quantity FromMilli(int64_t thousandths);

  // Returns the integer at or next to it, away from zero: "1500m" is 2, "-1500m" is -2. For a size
  // that is the number of bytes.
  int64_t Value() const;
  // Returns it in thousandths, rounded likewise. Errors (NotApplied): OutOfRange if that does not
  // fit 64 bits.
  Result<int64_t> MilliValue() const;

  bool IsZero() const { return nanos_ == 0; }
  // -1, 0 or 1.
  int Sign() const { return nanos_ > 0 ? 1 : (nanos_ < 0 ? -1 : 0); }
  Format format() const { return format_; }

  // The result has this quantity's format. Errors (NotApplied): OutOfRange if it is beyond 2^63-1
  // in magnitude.
  Result<Quantity> Add(const Quantity& other) const;
  Result<Quantity> Subtract(const Quantity& other) const;

  // Kubernetes' canonical form: no fraction, the largest suffix that needs none. A binary quantity
  // below 1024, or that is no integer, is written with decimal suffixes.
  std::string String() const;

  friend bool operator==(const Quantity& a, const Quantity& b) { return a.nanos_ == b.nanos_; }
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    return a.nanos_ <=> b.nanos_;
  }

 private:
  // Wide enough for 2^63 billionths-scaled units with room for one addition.
  __extension__ using Nanos = __int128;

  Quantity(Nanos nanos, Format format) : nanos_(nanos), format_(format) {}
  static Result<Quantity> Checked(Nanos nanos, Format format, std::string_view what);

  Nanos nanos_ = 0;
  Format format_ = Format::kDecimalSi;
};

}  // namespace volumed
