// The request of FakeEffects that limits what is asked of a device. A cgroup of the fake is a
// directory on a filesystem of type cgroup2 or cgroup that has the files of its version: the test
// makes them.
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "fakes/fake_effects.h"
#include "os/io_limits.h"

namespace volumed {
namespace {

// The content of a kernel's file once the line of this device is `line`; empty: it has none.
std::string WithLineOf(const std::string& content, const std::string& number,
                       const std::string& line) {
  std::string changed;
  for (const std::string& there : SplitNonEmpty(content, '\n')) {
    if (!there.starts_with(number + " ")) changed += there + "\n";
  }
  return line.empty() ? changed : changed + line + "\n";
}

// Where a cgroup may be in the fake: its directory, and the version of its files.
bool ShowsCgroups(const MountEntry& mount) {
  return (mount.fs_type == "cgroup2" || mount.fs_type == "cgroup") && mount.root == "/";
}

}  // namespace

std::optional<FakeLocation> FakeEffects::FileOfCgroup(FakeLocation cgroup,
                                                      const std::string& name) const {
  FakeLocation file;
  if (OpenChild(cgroup, name, false, &file) != 0) return std::nullopt;
  return file;
}

Status FakeEffects::WriteLimit(FakeLocation file, const std::string& content, bool* changed) {
  if (vfs_.InodeAt(file).content == content) return OkStatus();
  if (const int error = vfs_.IsReadOnly(file) ? EROFS : vfs_.WriteFile(file, content)) {
    return Error::FromParts(Code::kFailedPrecondition,
                            *changed ? Outcome::kMaybeApplied : Outcome::kNotApplied, error,
                            "limit: " + vfs_.PathOf(file) + " cannot be written");
  }
  *changed = true;
  return OkStatus();
}

// Version 1: each cgroup for itself.
Status FakeEffects::LimitEach(FakeLocation cgroup, const std::string& number,
                              const IoLimits& limits, bool* changed) {
  for (const BlkioThrottle& throttle : kBlkioThrottles) {
    const std::optional<FakeLocation> file = FileOfCgroup(cgroup, throttle.file);
    if (!file) return Error::FromErrno(ENOENT, "limit", Outcome::kNotApplied);
    const int64_t limit = limits.*throttle.limit;
    const std::string line = limit == 0 ? "" : number + " " + std::to_string(limit);
    RETURN_IF_ERROR(
        WriteLimit(*file, WithLineOf(vfs_.InodeAt(*file).content, number, line), changed));
  }
  const auto names = vfs_.InodeAt(cgroup).children;
  for (const auto& [name, dentry] : names) {
    const std::optional<FakeLocation> child = FileOfCgroup(cgroup, name);
    if (!child || vfs_.InodeAt(*child).type != FileType::kDirectory) continue;
    RETURN_IF_ERROR(LimitEach(*child, number, limits, changed));
  }
  return OkStatus();
}

Result<CgroupIoLimits> FakeEffects::operator()(const SetIoLimits& request) {
  const std::string what = "limit what is asked of " + request.device;
  RETURN_IF_ERROR(CheckIoLimits(request));
  ASSIGN_OR_RETURN(const FakeDevice* device, OpenDevice(request.device));
  DeviceIdentity expected = request.expected;
  expected.uuid = device->identity.uuid;
  const std::string difference = IdentityDifference(expected, device->identity);
  if (!difference.empty()) {
    return Refuse(what, "it is not the one that was expected: " + difference,
                  Code::kFailedPrecondition);
  }
  const std::string number = IoDeviceNumber(device->identity);
  for (const MountEntry& mount : vfs_.Table()) {
    if (!ShowsCgroups(mount)) continue;
    for (const std::string& name : request.cgroups) {
      const SafePath path{mount.mount_point, name};
      const Result<FakeLocation> cgroup = Open(path, {false, true});
      if (!cgroup.ok() && IsMissing(cgroup.error())) continue;
      if (!cgroup.ok()) return cgroup.error();
      CgroupIoLimits answer{path.Display(), request.limits, false, false};
      if (const auto file = FileOfCgroup(*cgroup, kIoMaxFile)) {
        const std::string line =
            request.limits == IoLimits{} ? "" : IoMaxLine(number, request.limits);
        RETURN_IF_ERROR(WriteLimit(*file, WithLineOf(vfs_.InodeAt(*file).content, number, line),
                                   &answer.changed));
        return answer;
      }
      if (!FileOfCgroup(*cgroup, kBlkioThrottles[0].file)) continue;
      answer.is_each_alone = true;
      RETURN_IF_ERROR(LimitEach(*cgroup, number, request.limits, &answer.changed));
      return answer;
    }
  }
  return Refuse(what, "there is no cgroup " + request.cgroups.front() + " with limits",
                Code::kFailedPrecondition);
}

}  // namespace volumed
