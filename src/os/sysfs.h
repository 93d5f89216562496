// Reading sysfs: small attributes, and the names in a directory. Nothing of it touches a device.
// Threads: any. Blocks: never.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace volumed {

// A small attribute without the blanks around it; nothing when there is none, or none but blanks.
std::optional<std::string> ReadAttribute(const std::string& path);

// Of what is in a directory, but for hidden ones; nothing where it cannot be read.
std::vector<std::string> NamesIn(const std::string& path);

}  // namespace volumed
