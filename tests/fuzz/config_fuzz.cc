// A configuration file; lines that begin with "--" are flags (--key=value), which win over it. What
// is taken is printed with each key, and is the same when it is read again.
#include "agent/config.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/descriptor.h"
#include "fuzz/fuzz.h"

namespace volumed::config_fuzz {
namespace {

struct Given {
  std::string file;
  FlagValues flags;
};

Given Read(std::string_view text) {
  Given given;
  while (const std::optional<std::string_view> line = fuzz::TakeLine(text)) {
    if (line->starts_with("--")) {
      const fuzz::Halves halves = fuzz::Cut(line->substr(2), '=');
      given.flags[std::string(halves.before)].emplace_back(halves.behind);
    } else {
      given.file.append(*line).append("\n");
    }
  }
  return given;
}

// A file in memory: nothing is left of it.
Result<Config> Load(const Given& given) {
  const Descriptor file(::memfd_create("config", MFD_CLOEXEC));
  const auto written = ::write(file.get(), given.file.data(), given.file.size());
  FUZZ_CHECK(written == static_cast<ssize_t>(given.file.size()));
  return LoadConfig("/proc/self/fd/" + std::to_string(file.get()), true, given.flags);
}

}  // namespace

FUZZ_TARGET(config)(const uint8_t* data, size_t size) {
  const Given given = Read(fuzz::TextOf(data, size));
  const Result<Config> config = Load(given);
  if (!config.ok()) {
    fuzz::CheckError(config.error());
    FUZZ_CHECK(!config.error().maybe_applied());
    return 0;
  }
  FUZZ_CHECK(PrintConfig(*config).size() == ConfigKeys().size());
  const Result<Config> again = Load(given);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(PrintConfig(*again) == PrintConfig(*config));
  FUZZ_CHECK(MergeReloadable(*config, *again).changes.empty());
  return 0;
}

}  // namespace volumed::config_fuzz
