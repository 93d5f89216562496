#include "os/sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string_view>

#include "base/descriptor.h"
#include "base/strings.h"

namespace volumed {

std::optional<std::string> ReadAttribute(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  std::array<char, 4096> text;
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size <= 0) return std::nullopt;
  const std::string_view trimmed =
      TrimSpace(std::string_view(text.data(), static_cast<size_t>(size)));
  if (trimmed.empty()) return std::nullopt;
  return std::string(trimmed);
}

std::vector<std::string> NamesIn(const std::string& path) {
  const auto close = [](DIR* directory) { ::closedir(directory); };
  const std::unique_ptr<DIR, decltype(close)> directory(::opendir(path.c_str()), close);
  std::vector<std::string> names;
  while (const dirent* entry = directory == nullptr ? nullptr : ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

std::optional<dev_t> BlockNumberIn(const std::string& directory) {
  const std::optional<std::string> text = ReadAttribute(directory + "/dev");
  if (!text) return std::nullopt;
  const size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto high = ParseUint64(text->substr(0, colon));
  const auto low = ParseUint64(text->substr(colon + 1));
  if (!high || !low) return std::nullopt;
  return makedev(static_cast<unsigned>(*high), static_cast<unsigned>(*low));
}

std::vector<dev_t> BlockNumbersBelow(const std::string& directory) {
  std::vector<dev_t> numbers;
  for (const std::string& name : NamesIn(directory)) {
    if (const auto number = BlockNumberIn(directory + "/" + name)) numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace volumed
