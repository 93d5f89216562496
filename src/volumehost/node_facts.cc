#include "volumehost/node_facts.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr char kMemInfo[] = "/proc/meminfo";

}  // namespace

Result<int64_t> ParseMemTotalBytes(std::string_view meminfo) {
  for (const std::string& line : Split(meminfo, '\n')) {
    const auto rest = StripPrefix(line, "MemTotal:");
    if (!rest) continue;
    const auto number = StripSuffix(TrimSpace(*rest), " kB");
    const auto kilobytes = number ? ParseInt64(TrimSpace(*number)) : std::nullopt;
    // procfs writes kB and means 1024 bytes. Source: proc(5).
    if (kilobytes && *kilobytes > 0 && *kilobytes <= std::numeric_limits<int64_t>::max() / 1024) {
      return *kilobytes * 1024;
    }
    break;
  }
  return Error::NotApplied(Code::kDataLoss, "no usable MemTotal in /proc/meminfo");
}

Result<NodeFacts> NodeFacts::Read(NodeFactsOptions options) {
  std::ifstream file(kMemInfo);
  if (!file) {
    return Error::FromErrno(errno, std::string("open ") + kMemInfo, Outcome::kNotApplied);
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSIGN_OR_RETURN(const int64_t memory_bytes, ParseMemTotalBytes(text));
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (processors < 1) {
    return Error::FromErrno(errno, "count the processors", Outcome::kNotApplied);
  }
  // emplace: what the options name already stays.
  options.allocatable.emplace("memory", Quantity::FromBytes(memory_bytes));
  options.allocatable.emplace("cpu", Quantity::FromInteger(processors));
  return NodeFacts(std::move(options));
}

}  // namespace volumed
