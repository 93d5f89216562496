// How an enum's values are written in a manifest.
// Threads: any. Blocks: no.
#pragma once

#include <string_view>

namespace volumed {

// The texts of an enum's values in a manifest, in the order in which messages list them. Each enum
// specialises this with an array kValues of (value, text). A reader takes the texts alone; case
// counts.
template <typename E>
struct EnumNames;

// The name of a value; "" for a value without a name, which a manifest can only give by leaving its
// field out. The text lives as long as the program.
template <typename E>
std::string_view EnumText(E value) {
  for (const auto& [known, text] : EnumNames<E>::kValues) {
    if (known == value) return text;
  }
  return "";
}

}  // namespace volumed
