#include "mounter/safe_format_and_mount.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/random.h"
#include "mounter/resize_fs.h"

namespace volumed {
namespace {

// Source: kubernetes mount-utils mount_linux.go@v1.36.2 (the default of fstype).
constexpr char kDefaultFsType[] = "ext4";

bool IsReadOnly(const std::vector<std::string>& options) {
  return std::find(options.begin(), options.end(), "ro") != options.end();
}

}  // namespace

struct SafeFormatAndMount::Run {
  const SafeMountRequest& request;
  const CallOptions& call;
  const Progress& progress;
  SafeMountReport report;
  FormatQuestion question;
  DeviceProbe probe;
  std::optional<FormatIntent> intent;

  CallOptions Options(SafeMountStage stage) const {
    CallOptions options = call;
    if (options.domain.empty()) options.domain = DeviceDomain(request.device);
    options.progress = nullptr;
    if (progress) {
      options.progress = [shared = progress, stage](int64_t bytes) { shared(stage, bytes); };
      progress(stage, 0);
    }
    return options;
  }
  Error Fail(MountErrorType type, Error error) {
    report.error_type = type;
    return error;
  }
  void Notice(bool warning, std::string reason, std::string message) {
    report.notices.push_back({warning, std::move(reason), std::move(message)});
  }
};

std::string_view SafeMountStageName(SafeMountStage stage) {
  switch (stage) {
    case SafeMountStage::kProbing:
      return "probing";
    case SafeMountStage::kFormatting:
      return "formatting";
    case SafeMountStage::kChecking:
      return "checking";
    case SafeMountStage::kGrowing:
      return "growing";
    case SafeMountStage::kMounting:
      return "mounting";
  }
  return "unknown";
}

SafeMountReport SafeFormatAndMount::FormatAndMount(const SafeMountRequest& request,
                                                   const CallOptions& call,
                                                   const Progress& progress) {
  Run run{request, call, progress, {}, {}, {}, {}};
  Prepare(run);
  run.report.status = [&]() -> Status {
    RETURN_IF_ERROR(Decide(run));
    RETURN_IF_ERROR(Grow(run));
    return MountIt(run);
  }();
  if (run.report.status.ok() && run.report.read_only && !IsReadOnly(request.options)) {
    run.Notice(true, "DeviceReadOnly",
               "disk " + request.device + " is write-protected and is mounted read-only");
  }
  return std::move(run.report);
}

void SafeFormatAndMount::Prepare(Run& run) {
  run.question.device = run.request.device;
  run.question.fs_type = run.request.fs_type.empty() ? kDefaultFsType : run.request.fs_type;
  run.question.read_only = IsReadOnly(run.request.options);
  run.question.for_readers = run.request.for_readers;
  run.question.needs_whole = run.request.needs_whole;
  run.question.format_policy = run.request.format_policy;
  run.question.fsck_policy = run.request.fsck_policy;
  run.report.fs_type = run.question.fs_type;
}

Result<FormatDecision> SafeFormatAndMount::DecideByProbe(Run& run, bool full_scan) {
  Result<DeviceProbe> probe = kernel_.Call(ProbeDevice{run.request.device, full_scan, false},
                                           run.Options(SafeMountStage::kProbing));
  if (!probe.ok()) {
    return run.Fail(MountErrorType::kGetDiskFormatFailed,
                    probe.error().With("failed to get the format of disk " + run.request.device));
  }
  run.probe = *std::move(probe);
  run.report.device = run.probe.identity;
  if (run.request.expected_device) {
    const std::string difference =
        IdentityDifference(*run.request.expected_device, run.probe.identity);
    if (!difference.empty()) {
      return run.Fail(MountErrorType::kGetDiskFormatFailed,
                      Error::NotApplied(Code::kFailedPrecondition,
                                        "disk " + run.request.device +
                                            " is not the one that was found: " + difference));
    }
  }
  if (!run.request.fs_uuid.empty() && run.request.fs_uuid != run.probe.identity.uuid) {
    const std::string& there = run.probe.identity.uuid;
    return run.Fail(
        MountErrorType::kFilesystemMismatch,
        Error::NotApplied(Code::kFailedPrecondition,
                          "disk " + run.request.device + " is to have the filesystem with UUID " +
                              run.request.fs_uuid + ", and has " +
                              (there.empty() ? "none with a UUID" : "that with " + there)));
  }
  if (run.probe.read_only && run.request.read_only_if_protected) run.question.read_only = true;
  run.report.read_only = run.question.read_only;
  return DecideFormat(run.question, run.probe, run.intent);
}

Status SafeFormatAndMount::Decide(Run& run) {
  CallOptions look = run.call;
  if (look.domain.empty()) look.domain = DeviceDomain(run.request.device);
  RETURN_IF_ERROR(intents_.Reserve(run.request.key, run.request.device, look));
  ASSIGN_OR_RETURN(run.intent, intents_.Find(run.request.key));
  ASSIGN_OR_RETURN(FormatDecision decision, DecideByProbe(run, false));
  if (decision.action == FormatAction::kFullScan) {
    ASSIGN_OR_RETURN(decision, DecideByProbe(run, true));
  }
  if (decision.action == FormatAction::kProveFinished) {
    RETURN_IF_ERROR(ProveFinished(run));
    decision = DecideFormat(run.question, run.probe, run.intent);
  }
  switch (decision.action) {
    case FormatAction::kMount:
      return decision.check ? Check(run, *decision.check) : OkStatus();
    case FormatAction::kFormat:
      return Format(run, false);
    case FormatAction::kRepeatFormat:
      return Format(run, true);
    case FormatAction::kFullScan:
      return Error::NotApplied(
          Code::kInternal, "disk " + run.request.device + ": a full scan did not read everything");
    case FormatAction::kProveFinished:
      return Error::NotApplied(
          Code::kInternal, "disk " + run.request.device + ": a proven format is not taken for one");
    case FormatAction::kRefuse:
      break;
  }
  return run.Fail(decision.error_type,
                  Error::NotApplied(Code::kFailedPrecondition, std::move(decision.reason)));
}

Status SafeFormatAndMount::Format(Run& run, bool repeat) {
  if (const Status held = irreversible_.Admit(IrreversibleStep::kFormat, run.request.volume);
      !held.ok()) {
    return run.Fail(MountErrorType::kFormatFailed, held.error());
  }
  FormatIntent intent;
  intent.device = run.probe.identity;
  intent.device.uuid.clear();
  intent.fs_type = run.question.fs_type;
  // A repeated mkfs keeps the UUID of the first, so that whatever either of them leaves when it is
  // cut off is recognised.
  intent.fs_uuid = repeat ? run.intent->fs_uuid : NewUuid();
  RETURN_IF_ERROR(intents_.Begin(run.request.key, intent).With("record the format's intent"));
  FormatDevice format;
  format.device = run.request.device;
  format.expected = intent.device;
  format.fs_type = intent.fs_type;
  format.fs_uuid = intent.fs_uuid;
  format.options = run.request.format_options;
  format.reads_zero = !repeat && run.probe.read_whole;
  format.repeat = repeat;
  const Result<Done> done = kernel_.Call(format, run.Options(SafeMountStage::kFormatting));
  if (!done.ok()) {
    const Error failed = done.error().With("failed to format disk " + run.request.device);
    if (!failed.maybe_applied() && !repeat) {
      // The mkfs wrote nothing, so the intent is withdrawn: what somebody else puts there later
      // must not be taken for ours.
      const Status withdrawn = intents_.Withdraw(run.request.key);
      if (!withdrawn.ok()) {
        run.Notice(true, "FormatFailed",
                   "the format's intent could not be withdrawn: " + withdrawn.error().message());
      }
    }
    return run.Fail(MountErrorType::kFormatFailed, failed);
  }
  if (const Status finished = intents_.Finish(run.request.key, intent); !finished.ok()) {
    return run.Fail(MountErrorType::kFormatFailed,
                    finished.error().With("record the finished format").AsMaybeApplied());
  }
  run.report.formatted = true;
  run.report.device.uuid = intent.fs_uuid;
  run.Notice(false, "FilesystemFormatted",
             "disk " + run.request.device + " was blank and is formatted with " + intent.fs_type +
                 ", UUID " + intent.fs_uuid);
  return OkStatus();
}

// mkfs may have finished without anybody there to record it. A filesystem that is proven complete
// is never made again. One that is not complete is not known to be empty either, so a person has to
// judge. The checker has the call's deadline: it reads a whole filesystem quickly, but may need
// hours for a broken one.
Status SafeFormatAndMount::ProveFinished(Run& run) {
  const std::string what = "disk " + run.request.device + " has " + run.probe.fs_type +
                           " with the UUID of this volume's unfinished format (" +
                           run.intent->fs_uuid + ")";
  const Result<FilesystemCheck> check =
      kernel_.Call(CheckFilesystem{run.request.device, run.probe.identity, run.probe.fs_type,
                                   CheckMode::kReport},
                   run.Options(SafeMountStage::kChecking));
  if (!check.ok()) {
    // This holds for a checker that was killed, too, for it writes nothing.
    return run.Fail(
        MountErrorType::kFormatFailed,
        Error::FromParts(
            check.error().code(), Outcome::kNotApplied, check.error().sys_errno(),
            what + ", and whether it is complete is not known: " + check.error().message()));
  }
  if (check->result != CheckResult::kClean) {
    return run.Fail(
        MountErrorType::kFormatFailed,
        Error::NotApplied(Code::kFailedPrecondition,
                          what + ", which '" + check->tool + "' does not find clean (status " +
                              std::to_string(check->exit_code) +
                              "): it is neither mounted nor formatted again; mend it, or make it "
                              "by hand with this UUID: " +
                              check->output));
  }
  RETURN_IF_ERROR(intents_.Finish(run.request.key, *run.intent).With("record the finished format"));
  run.intent->finished = true;
  run.Notice(false, "FilesystemFormatted",
             what + ", and '" + check->tool + "' finds it clean: the format is finished");
  return OkStatus();
}

Status SafeFormatAndMount::Check(Run& run, CheckMode mode) {
  CallOptions options = run.Options(SafeMountStage::kChecking);
  // If the owner has asked for a report, the mount waits for it, however large the disk is.
  options.must_finish = true;
  Result<FilesystemCheck> check = kernel_.Call(
      CheckFilesystem{run.request.device, run.probe.identity, run.question.fs_type, mode}, options);
  if (!check.ok()) {
    // Kubelet also goes on if another mount has the device in use, which has checked it, and if
    // there is no tool.
    const bool goes_on =
        check.error().sys_errno() == EBUSY || check.error().code() == Code::kNotFound;
    if (!goes_on || check.error().maybe_applied()) return check.error();
    run.Notice(true, "FilesystemNotChecked", check.error().message());
    return OkStatus();
  }
  run.report.check = *check;
  switch (check->result) {
    case CheckResult::kClean:
    case CheckResult::kSkipped:
      return OkStatus();
    case CheckResult::kFixed:
      run.Notice(false, "FilesystemFixed",
                 "device " + run.request.device + " has errors which were corrected by '" +
                     check->tool + "': " + check->output);
      return OkStatus();
    case CheckResult::kOperationalError:
      run.Notice(true, "FilesystemNotChecked",
                 "'" + check->tool + "' ended with status " + std::to_string(check->exit_code) +
                     " on device " + run.request.device + ": " + check->output);
      return OkStatus();
    case CheckResult::kUncorrected:
      break;
  }
  if (mode == CheckMode::kReport) {
    run.Notice(true, "FilesystemHasErrors",
               "'" + check->tool + "' found errors on device " + run.request.device + ": " +
                   check->output);
    return OkStatus();
  }
  // Source: kubernetes mount-utils mount_linux.go@v1.36.2 (checkAndRepairFilesystem).
  return run.Fail(MountErrorType::kHasFilesystemErrors,
                  Error::NotApplied(Code::kFailedPrecondition,
                                    "'fsck' found errors on device " + run.request.device +
                                        " but could not correct them: " + check->output));
}

Status SafeFormatAndMount::Grow(Run& run) {
  const bool grows_unmounted = run.question.fs_type == "ext3" || run.question.fs_type == "ext4";
  if (!run.request.grow || !grows_unmounted || run.question.read_only || run.report.formatted) {
    return OkStatus();
  }
  const Result<FilesystemGrowth> growth =
      kernel_.Call(GrowFilesystem{run.request.device, run.report.device, run.question.fs_type},
                   run.Options(SafeMountStage::kGrowing));
  if (growth.ok()) {
    run.report.growth = *growth;
    if (growth->before_bytes != growth->after_bytes) {
      run.Notice(false, "FilesystemGrown",
                 "device " + run.request.device + " has " + GrowthText(*growth));
    }
    return OkStatus();
  }
  run.Notice(true, "FileSystemResizeFailed", growth.error().message());
  if (!growth.error().maybe_applied()) return OkStatus();
  // A growth that was cut off is marked in the superblock, and nothing is mounted before it is
  // repaired.
  return Check(run, CheckMode::kPreen);
}

// From here on there is data to lose. Once a filesystem was seen, the volume is never formatted,
// whatever an old intent allows or the disk reads as one day.
Status SafeFormatAndMount::RecordFound(Run& run) {
  if (run.report.formatted) return OkStatus();
  if (run.intent.has_value() && run.intent->finished) return OkStatus();
  FormatIntent found;
  found.device = run.probe.identity;
  found.device.uuid.clear();
  found.fs_type = run.probe.fs_type;
  found.fs_uuid = run.probe.identity.uuid;
  return intents_.Finish(run.request.key, found).With("record the filesystem that was found");
}

Status SafeFormatAndMount::MountIt(Run& run) {
  RETURN_IF_ERROR(RecordFound(run));
  Mount mount;
  mount.fs_type = run.question.fs_type;
  mount.source = run.request.device;
  mount.target = run.request.target;
  mount.options = run.request.options;
  if (run.report.read_only && !IsReadOnly(mount.options)) mount.options.emplace_back("ro");
  mount.options.emplace_back("defaults");
  mount.expected_device = run.report.device;
  const Result<Done> done = kernel_.Call(mount, run.Options(SafeMountStage::kMounting));
  if (done.ok()) return OkStatus();
  const Error& error = done.error();
  // XFS answers EINVAL for a UUID that is already mounted, and for other things.
  if (mount.fs_type == "xfs" && error.sys_errno() == EINVAL && !error.maybe_applied()) {
    return MountWithNouuid(run, std::move(mount), error);
  }
  return run.Fail(MountErrorType::kUnknownMountError, error);
}

Status SafeFormatAndMount::MountWithNouuid(Run& run, Mount mount, const Error& refused) {
  const Result<DeviceProbe> probe = kernel_.Call(ProbeDevice{run.request.device, false, true},
                                                 run.Options(SafeMountStage::kProbing));
  if (!probe.ok() || probe->duplicate.empty()) {
    return run.Fail(MountErrorType::kUnknownMountError, refused);
  }
  mount.options.emplace_back("nouuid");
  const Result<Done> done = kernel_.Call(mount, run.Options(SafeMountStage::kMounting));
  if (!done.ok()) return run.Fail(MountErrorType::kUnknownMountError, done.error());
  run.Notice(true, "DuplicateFilesystemUUID",
             "disk " + run.request.device + " is a copy of " + probe->duplicate + " (XFS, UUID " +
                 probe->identity.uuid + ") and is mounted with nouuid");
  return OkStatus();
}

}  // namespace volumed
