// Standard base64 (RFC 4648 section 4) as secrets carry it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace volumed {

// Skips line breaks, as Go's decoder does; nullopt for text that is not base64.
std::optional<std::string> Base64Decode(std::string_view text);
std::string Base64Encode(std::string_view bytes);

}  // namespace volumed
