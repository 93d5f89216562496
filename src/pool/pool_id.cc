#include "pool/pool_id.h"

#include <algorithm>
#include <cstddef>

#include "base/random.h"
#include "kube/digest.h"

namespace volumed {
namespace {

constexpr size_t kTagDigits = 8;
constexpr size_t kSerialDigits = 24;
constexpr size_t kTagAt = 2;
constexpr size_t kSerialAt = kTagAt + kTagDigits + 1;
constexpr size_t kLength = kSerialAt + kSerialDigits;

char LetterOf(PoolObject object) {
  switch (object) {
    case PoolObject::kVolume:
      return 'v';
    case PoolObject::kCut:
      return 's';
    case PoolObject::kGroup:
      return 'g';
  }
  __builtin_unreachable();
}

std::optional<PoolObject> ObjectOf(char letter) {
  for (const PoolObject object : {PoolObject::kVolume, PoolObject::kCut, PoolObject::kGroup}) {
    if (LetterOf(object) == letter) return object;
  }
  return std::nullopt;
}

// Not by std::isxdigit: a locale has no say in what is joined into a path.
bool AreDigits(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::string PoolId::ToString() const {
  return std::string(1, LetterOf(object)) + "-" + pool_tag + "-" + serial;
}

std::optional<PoolId> ParsePoolId(std::string_view text) {
  if (text.size() != kLength || text[1] != '-' || text[kSerialAt - 1] != '-') return std::nullopt;
  const std::optional<PoolObject> object = ObjectOf(text[0]);
  const std::string_view tag = text.substr(kTagAt, kTagDigits);
  const std::string_view serial = text.substr(kSerialAt);
  if (!object || !AreDigits(tag) || !AreDigits(serial)) return std::nullopt;
  return PoolId{*object, std::string(tag), std::string(serial)};
}

std::string PoolTag(std::string_view pool_uuid) {
  return Sha256Hex(pool_uuid).substr(0, kTagDigits);
}

PoolId NewPoolId(PoolObject object, const std::string& pool_tag) {
  return {object, pool_tag, RandomHex(kSerialDigits)};
}

}  // namespace volumed
