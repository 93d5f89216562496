#include "os/answers.h"

namespace volumed {
namespace {

// A worker may be ended from outside while it looks: that says nothing of the place.
constexpr int kLooks = 3;

bool IsSilent(const Error& error) {
  return error.code() == Code::kDeadlineExceeded || error.code() == Code::kUnavailable;
}

}  // namespace

Status CheckAnswers(Kernel& kernel, const Clock& clock, const std::string& path,
                    Duration patience) {
  CallOptions call;
  call.deadline = Deadline::After(clock, patience);
  call.domain = path;
  const SafePath place{path, "", Resolve::kBeneath};
  // Attributes may be remembered by the kernel; how full a filesystem is, its server says.
  const auto look = [&]() -> Status {
    RETURN_IF_ERROR(kernel.Call(Stat{.path = place, .follow = true}, call));
    RETURN_IF_ERROR(kernel.Call(StatFs{.path = place}, call));
    return OkStatus();
  };
  Status looked = look();
  for (int again = 1; again < kLooks && !looked.ok(); ++again) {
    if (looked.error().code() != Code::kUnavailable) break;
    looked = look();
  }
  if (looked.ok() || !IsSilent(looked.error())) return OkStatus();
  return Error::NotApplied(Code::kDeadlineExceeded, path + " does not answer");
}

}  // namespace volumed
