// Lines of mount options, as a manifest lists them: split into flags and parameters, joined with a
// plugin's own, and handed to a helper program. All of these agree on what the words are.
#include "mounter/mount_options.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/strings.h"
#include "fuzz/fuzz.h"
#include "os/mount_options.h"

namespace volumed::mount_options_fuzz {
namespace {

using Words = std::vector<std::string>;

bool Same(const MountOptions& a, const MountOptions& b) {
  const auto same = [](const SuperParameter& x, const SuperParameter& y) {
    return std::tie(x.key, x.value, x.is_flag) == std::tie(y.key, y.value, y.is_flag);
  };
  return std::tie(a.attributes, a.clear_attributes, a.sets_atime) ==
             std::tie(b.attributes, b.clear_attributes, b.sets_atime) &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                    b.parameters.end(), same);
}

void CheckParsed(const Words& options) {
  const Result<MountOptions> parsed = ParseMountOptions(options);
  const std::string for_helper = OptionsForHelper(options);
  FUZZ_CHECK(OptionsForHelper({for_helper}) == for_helper);
  const Result<MountOptions> again = ParseMountOptions({for_helper});
  FUZZ_CHECK(parsed.ok() == again.ok());
  if (!parsed.ok()) return fuzz::CheckError(parsed.error());
  FUZZ_CHECK(Same(*parsed, *again));
  FUZZ_CHECK((parsed->attributes & parsed->clear_attributes) == 0);
  for (const SuperParameter& parameter : parsed->parameters) {
    FUZZ_CHECK(!parameter.key.empty());
    FUZZ_CHECK(parameter.key.find_first_of("=,") == std::string::npos);
    FUZZ_CHECK(parameter.value.find(',') == std::string::npos);
    FUZZ_CHECK(!parameter.is_flag || parameter.value.empty());
  }
}

void CheckJoined(const Words& user, const Words& system) {
  const Words joined = JoinMountOptions(user, system);
  FUZZ_CHECK(std::is_sorted(joined.begin(), joined.end()));
  FUZZ_CHECK(std::adjacent_find(joined.begin(), joined.end()) == joined.end());
  FUZZ_CHECK(JoinMountOptions(joined, system) == joined);
  for (const std::string& option : user) {
    FUZZ_CHECK(option.empty() || std::binary_search(joined.begin(), joined.end(), option));
  }
  for (const std::string& option : system) {
    FUZZ_CHECK(std::binary_search(joined.begin(), joined.end(), option));
  }
  FUZZ_CHECK(joined.size() <= user.size() + system.size());
  CheckParsed(joined);
}

}  // namespace

FUZZ_TARGET(mount_options)(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::TextOf(data, size);
  const Words lines = Split(text, '\n');
  const Words system = {"nosuid", "ro"};
  CheckParsed(lines);
  CheckJoined(lines, system);
  const StringMap annotations = {{"volume.beta.kubernetes.io/mount-options", std::string(text)}};
  CheckParsed(MountOptionFromSpec(annotations, lines, system));
  CheckParsed(MountOptionFromSpec({}, lines, system));
  return 0;
}

}  // namespace volumed::mount_options_fuzz
