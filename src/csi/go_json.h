// JSON as Go's encoder writes it, byte for byte, where another program compares what it reads, or
// a driver gets what it would get from a kubelet.
//
// All functions are pure; threads: any. Blocks: never. Errors: none.
// Source: go encoding/json encode.go@go1.25 (appendString, with escapeHTML).
#pragma once

#include <string>
#include <string_view>

#include "kube/object_meta.h"

namespace volumed {

// Appends the text with its quotes. '<', '>', '&', U+2028 and U+2029 are escaped like control
// characters; a byte that is no UTF-8 becomes "\ufffd".
void AppendGoJsonText(std::string_view text, std::string& out);

// {"a":"b","c":"d"}: sorted by key, without a blank, and without a newline.
std::string GoJsonObject(const StringMap& texts);

}  // namespace volumed
