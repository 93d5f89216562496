// Lines as the paths of a payload. What the writer takes stays below its target and is no two
// things at once; what a manifest may say for one file the writer takes, once it is clean.
#include <algorithm>
#include <set>
#include <vector>

#include "base/strings.h"
#include "fuzz/fuzz.h"
#include "kube/field_rules.h"
#include "os/atomic_payload.h"

namespace volumed::payload_paths_fuzz {
namespace {

Status Validate(const std::vector<std::string>& paths) {
  std::vector<PayloadFile> files;
  for (const std::string& path : paths) files.push_back({path, Secret<std::string>()});
  return ValidatePayloadPaths(files);
}

void CheckTaken(const std::vector<std::string>& paths) {
  std::set<std::string> files;
  std::set<std::string> directories;
  for (const std::string& path : paths) {
    FUZZ_CHECK(!path.empty() && fuzz::StaysInside(path));
    FUZZ_CHECK(!path.starts_with(".."));
    FUZZ_CHECK(CleanPath(path) == path);
    FUZZ_CHECK(files.insert(path).second);
    for (size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      directories.insert(path.substr(0, slash));
    }
  }
  for (const std::string& directory : directories) FUZZ_CHECK(!files.contains(directory));
}

void CheckOne(const std::string& path) {
  const Status alone = Validate({path});
  if (!rules::kPayloadPath.broken(path)) FUZZ_CHECK(Validate({CleanPath(path)}).ok());
  if (!rules::kConfigKey.broken(path)) FUZZ_CHECK(alone.ok());
  if (alone.ok()) FUZZ_CHECK(!rules::kPayloadPath.broken(path));
}

}  // namespace

FUZZ_TARGET(payload_paths)(const uint8_t* data, size_t size) {
  const std::vector<std::string> paths = Split(fuzz::TextOf(data, size), '\n');
  const Status status = Validate(paths);
  if (status.ok()) {
    CheckTaken(paths);
  } else {
    fuzz::CheckError(status.error());
    FUZZ_CHECK(!status.error().maybe_applied());
  }
  std::for_each(paths.begin(), paths.end(), CheckOne);
  return 0;
}

}  // namespace volumed::payload_paths_fuzz
