// Two lines of text as quantities: what is printed is read as the same amount, and sums are exact.
#include "base/quantity.h"

#include "fuzz/fuzz.h"

namespace volumed::quantity_fuzz {
namespace {

std::optional<Quantity> Read(std::string_view text) {
  const Result<Quantity> quantity = Quantity::Parse(text);
  if (quantity.ok()) return *quantity;
  fuzz::CheckError(quantity.error());
  FUZZ_CHECK(!quantity.error().maybe_applied());
  return std::nullopt;
}

void CheckText(const Quantity& quantity) {
  const std::string text = quantity.String();
  const Result<Quantity> again = Quantity::Parse(text);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(*again == quantity);
  // A binary amount that is no multiple of 1024 is written without a suffix, and then is a decimal
  // one.
  if (again->format() == quantity.format()) FUZZ_CHECK(again->String() == text);
}

void CheckNumbers(const Quantity& quantity) {
  FUZZ_CHECK(quantity.IsZero() == (quantity.Sign() == 0));
  FUZZ_CHECK((quantity > Quantity()) == (quantity.Sign() > 0));
  // Rounded away from zero.
  const Quantity whole = Quantity::FromInteger(quantity.Value());
  FUZZ_CHECK(quantity.Sign() < 0 ? whole <= quantity : whole >= quantity);
  const Result<int64_t> milli = quantity.MilliValue();
  if (!milli.ok()) return fuzz::CheckError(milli.error());
  const Quantity thousandths = Quantity::FromMilli(*milli);
  FUZZ_CHECK(quantity.Sign() < 0 ? thousandths <= quantity : thousandths >= quantity);
}

void CheckSum(const Quantity& a, const Quantity& b) {
  const Result<Quantity> sum = a.Add(b);
  if (!sum.ok()) return fuzz::CheckError(sum.error());
  const Result<Quantity> difference = sum->Subtract(b);
  FUZZ_CHECK(difference.ok());
  FUZZ_CHECK(*difference == a);
  FUZZ_CHECK((*sum > a) == (b.Sign() > 0));
  CheckText(*sum);
}

}  // namespace

FUZZ_TARGET(quantity)(const uint8_t* data, size_t size) {
  std::string_view rest = fuzz::TextOf(data, size);
  const std::optional<Quantity> a = Read(fuzz::TakeLine(rest).value_or(""));
  const std::optional<Quantity> b = Read(rest);
  for (const std::optional<Quantity>& one : {a, b}) {
    if (!one) continue;
    CheckText(*one);
    CheckNumbers(*one);
  }
  if (a && b) CheckSum(*a, *b);
  return 0;
}

}  // namespace volumed::quantity_fuzz
