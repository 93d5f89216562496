// The bytes of a UUID, as superblocks have them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace volumed {

inline constexpr size_t kUuidSize = 16;

// Of "550e8400-e29b-41d4-a716-446655440000", with or without the hyphens; nullopt for what is none.
// Pure.
std::optional<std::string> UuidBytes(const std::string& text);

}  // namespace volumed
