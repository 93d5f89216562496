#include "os/mount_helper.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/hidden_texts.h"
#include "base/strings.h"
#include "os/mount_options.h"
#include "os/program.h"

namespace volumed {
namespace {

// A type is a word; "../x" would leave /sbin.
bool IsPlainType(const std::string& fs_type) {
  return !fs_type.empty() && fs_type.find('/') == std::string::npos && fs_type[0] != '.';
}

std::string FamilyOf(const std::string& fs_type) { return fs_type.substr(0, fs_type.find('.')); }

// "" without one. "fuse.sshfs" is mounted by mount.fuse.
std::string FindHelper(const std::string& fs_type) {
  if (!IsPlainType(fs_type)) return "";
  for (const std::string& name : {fs_type, FamilyOf(fs_type)}) {
    std::string path = "/sbin/mount." + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

// As mount(8) calls it: helper source target [-o options] [-t type.subtype].
std::vector<std::string> CommandOf(const std::string& helper, const Mount& request) {
  std::vector<std::string> command = {helper, request.source, request.target.Display()};
  if (const std::string options = OptionsForHelper(request.options); !options.empty()) {
    command.insert(command.end(), {"-o", options});
  }
  if (FamilyOf(request.fs_type) != request.fs_type) {
    command.insert(command.end(), {"-t", request.fs_type});
  }
  return command;
}

// An option's value may be a password, and a helper may name it.
std::vector<std::string> ValuesOf(const std::vector<std::string>& options) {
  constexpr size_t kTooShortToHide = 3;
  std::vector<std::string> values;
  for (const std::string& word : Split(OptionsForHelper(options), ',')) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    std::string value = word.substr(equals + 1);
    if (value.size() >= kTooShortToHide) values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

bool HasMountHelper(const std::string& fs_type) { return !FindHelper(fs_type).empty(); }

Status MountWithHelper(const Mount& request, const CallOptions& options) {
  const std::string what = "mount " + request.fs_type + " on " + request.target.Display();
  ProgramSetup setup;
  setup.arguments = CommandOf(FindHelper(request.fs_type), request);
  setup.scope = {"mount", request.target.Display()};
  // A helper that waits for its server moves no bytes that would tell how far it is.
  CallOptions silent = options;
  silent.progress = nullptr;
  ASSIGN_OR_RETURN(const ProgramOutcome outcome, RunToEnd(setup, silent));
  if (outcome.end.exited && outcome.end.status == 0) return OkStatus();
  const std::string said = WithoutValues(Join(SplitNonEmpty(outcome.output, '\n'), "; "),
                                         ValuesOf(request.options), "***");
  const std::string how = (outcome.end.exited ? " ended with status " : " was ended by signal ") +
                          std::to_string(outcome.end.status) + (said.empty() ? "" : ": " + said);
  if (outcome.end.exited) {
    return Error::NotApplied(Code::kUnknown, what + ": the mount helper" + how);
  }
  return Error::MaybeApplied(Code::kUnavailable, what + ": the mount helper" + how);
}

}  // namespace volumed
