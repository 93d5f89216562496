// PoolId: the name of a volume, a cut or a group of cuts, as everybody outside knows it. It says of
// which pool it is, so that what another node's pool has is never taken for gone.
//
// All functions are pure, unless said otherwise. Threads: any. Blocks: never.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace volumed {

// The text begins with a letter of its own for each: v, s, g.
enum class PoolObject { kVolume, kCut, kGroup };

// A value. Its parts are hexadecimal digits and nothing else, so that they may be joined into a
// path; the text of a caller never is.
struct PoolId {
  PoolObject object = PoolObject::kVolume;
  std::string pool_tag;  // 8 digits: PoolTag() of the pool's uuid
  std::string serial;    // 24 digits
  // "v-3fa91c02-0123456789abcdef01234567"
  std::string ToString() const;
  friend auto operator<=>(const PoolId&, const PoolId&) = default;
};

// Nullopt for a text that ToString() does not make, of whatever length.
std::optional<PoolId> ParsePoolId(std::string_view text);
// The first 8 digits of the uuid's SHA-256.
std::string PoolTag(std::string_view pool_uuid);
// A new one. Not pure: it is random (base/random.h).
PoolId NewPoolId(PoolObject object, const std::string& pool_tag);

}  // namespace volumed
