// Standard base64 with padding (RFC 4648 section 4), in which a manifest has the data of a Secret
// and the binaryData of a ConfigMap.
// Threads: any. Blocks: no.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace volumed {

// Returns the bytes, of any values. Line breaks are skipped, as Go's decoder does. The result is
// nullopt if the text is not base64 or its padding is not complete; "" stands for no bytes.
std::optional<std::string> Base64Decode(std::string_view text);
// Returns one line without a line break, whatever its length.
std::string Base64Encode(std::string_view bytes);

}  // namespace volumed
