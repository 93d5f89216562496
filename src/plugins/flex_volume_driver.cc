#include "plugins/flex_volume_driver.h"

#include <utility>

#include "base/hidden_texts.h"
#include "base/printable_text.h"
#include "base/strings.h"
#include "mounter/host_directory.h"

namespace volumed {
namespace {

// Of what a driver prints; beyond it only the end is kept, which is no JSON then.
constexpr size_t kOutputBytes = size_t{64} << 10;
// Of a message that is shown.
constexpr size_t kMessageBytes = 1024;
constexpr uint32_t kWritableByOthers = 0022;

bool OnlyAsks(FlexCommand command) {
  switch (command) {
    case FlexCommand::kInit:
    case FlexCommand::kGetVolumeName:
    case FlexCommand::kIsAttached:
      return true;
    case FlexCommand::kAttach:
    case FlexCommand::kWaitForAttach:
    case FlexCommand::kMountDevice:
    case FlexCommand::kMount:
    case FlexCommand::kUnmount:
    case FlexCommand::kUnmountDevice:
    case FlexCommand::kDetach:
    case FlexCommand::kExpandVolume:
    case FlexCommand::kExpandFs:
      return false;
  }
  __builtin_unreachable();
}

// A driver may repeat what it was given, and a shell drops a newline at the end.
std::vector<std::string> ToHide(const std::vector<FlexArgument>& arguments) {
  std::vector<std::string> values;
  for (const FlexArgument& argument : arguments) {
    for (const Secret<std::string>& secret : argument.secrets) {
      values.push_back(secret.Reveal());
      values.emplace_back(TrimSpace(secret.Reveal()));
    }
  }
  return values;
}

std::string Shown(const std::string& text, const std::vector<std::string>& hidden) {
  return std::string(BeginningOf(WithoutValues(text, hidden, "[redacted]"), kMessageBytes));
}

RunProgram RequestOf(const std::string& executable, FlexCommand command,
                     const std::vector<FlexArgument>& arguments) {
  RunProgram request;
  request.arguments = {executable, std::string(FlexCommandName(command))};
  for (const FlexArgument& argument : arguments) {
    if (argument.secret) request.secret_arguments[request.arguments.size()] = *argument.secret;
    request.arguments.push_back(argument.text);
  }
  request.output_bytes = kOutputBytes;
  return request;
}

Error Rebuilt(const Error& error, Outcome outcome) {
  return Error::FromParts(error.code(), outcome, error.sys_errno(), error.message());
}

}  // namespace

std::string_view FlexCommandName(FlexCommand command) {
  switch (command) {
    case FlexCommand::kInit:
      return "init";
    case FlexCommand::kGetVolumeName:
      return "getvolumename";
    case FlexCommand::kAttach:
      return "attach";
    case FlexCommand::kWaitForAttach:
      return "waitforattach";
    case FlexCommand::kIsAttached:
      return "isattached";
    case FlexCommand::kMountDevice:
      return "mountdevice";
    case FlexCommand::kMount:
      return "mount";
    case FlexCommand::kUnmount:
      return "unmount";
    case FlexCommand::kUnmountDevice:
      return "unmountdevice";
    case FlexCommand::kDetach:
      return "detach";
    case FlexCommand::kExpandVolume:
      return "expandvolume";
    case FlexCommand::kExpandFs:
      return "expandfs";
  }
  __builtin_unreachable();
}

std::string FlexFaultDomain(const std::string& driver) { return "flexvolume/" + driver; }

bool FlexVolumeDriver::IsKnownUnsupported(FlexCommand command) const {
  MutexLock lock(mu_);
  return unsupported_.contains(command);
}

Status FlexVolumeDriver::CheckPath(const std::string& path, FileType type,
                                   const CallOptions& call) {
  // Of the agent's own disk, whatever the driver's volumes hang with; and no matter of their key.
  CallOptions look;
  look.deadline = call.deadline;
  look.cancel = call.cancel;
  ASSIGN_OR_RETURN(const FileInfo info, kernel_.Call(Stat{.path = HostPath(path)}, look));
  if (info.type == FileType::kMissing) {
    return Error::NotApplied(Code::kNotFound, "it is not installed: " + path + " is missing");
  }
  const auto refuse = [&path](const std::string& why) {
    return Error::NotApplied(Code::kFailedPrecondition, "it is not run: " + path + " " + why);
  };
  if (info.type != type) {
    return refuse("is a " + std::string(FileTypeName(info.type)) + ", not a " +
                  std::string(FileTypeName(type)));
  }
  if (info.uid != 0) return refuse("belongs to uid " + std::to_string(info.uid) + ", not to root");
  if ((info.mode & kWritableByOthers) != 0) return refuse("may be written by others than root");
  return OkStatus();
}

Status FlexVolumeDriver::CheckMayBeRun(const CallOptions& call) {
  const std::string directory = executable_.substr(0, executable_.rfind('/'));
  RETURN_IF_ERROR(CheckPath(executable_, FileType::kRegular, call));
  RETURN_IF_ERROR(CheckPath(directory, FileType::kDirectory, call));
  return CheckPath(directory.substr(0, directory.rfind('/')), FileType::kDirectory, call);
}

Result<std::optional<FlexStatus>> FlexVolumeDriver::Run(FlexCommand command,
                                                        const std::vector<FlexArgument>& arguments,
                                                        const CallOptions& call) {
  const Outcome failed = OnlyAsks(command) ? Outcome::kNotApplied : Outcome::kMaybeApplied;
  const Result<ProgramEnd> end = kernel_.Call(RequestOf(executable_, command, arguments), call);
  if (!end.ok()) return OnlyAsks(command) ? Rebuilt(end.error(), failed) : end.error();
  const std::string exit = "exit status " + std::to_string(end->exit_status);
  const Result<FlexStatus> status = ParseFlexStatus(end->output);
  if (!status.ok()) {
    return Rebuilt(status.error(), failed).With("the driver ended with " + exit);
  }
  switch (status->outcome) {
    case FlexOutcome::kSuccess:
      if (end->exit_status == 0) return std::optional(*status);
      return Error::FromParts(Code::kInternal, failed, 0,
                              "the driver says \"Success\", and ended with " + exit);
    case FlexOutcome::kNotSupported: {
      MutexLock lock(mu_);
      unsupported_.insert(command);
      return std::optional<FlexStatus>();
    }
    case FlexOutcome::kFailure:
      break;
  }
  const std::vector<std::string> hidden = ToHide(arguments);
  return Error::FromParts(
      Code::kInternal, failed, 0,
      "status: " + Shown(status->status, hidden) + ", reason: " + Shown(status->message, hidden));
}

Result<std::optional<FlexStatus>> FlexVolumeDriver::Call(FlexCommand command,
                                                         const std::vector<FlexArgument>& arguments,
                                                         const CallOptions& call) {
  if (IsKnownUnsupported(command)) return std::optional<FlexStatus>();
  const std::string what =
      "flexVolume driver " + name_ + ": " + std::string(FlexCommandName(command)) + " failed";
  if (const Status safe = CheckMayBeRun(call); !safe.ok()) {
    return Rebuilt(safe.error(), Outcome::kNotApplied).With(what);
  }
  return Run(command, arguments, call).With(what);
}

Result<std::optional<FlexStatus>> FlexVolumeDriver::CallIfInstalled(
    FlexCommand command, const std::vector<FlexArgument>& arguments, const CallOptions& call) {
  Result<std::optional<FlexStatus>> answer = Call(command, arguments, call);
  const bool missing =
      !answer.ok() && answer.error().code() == Code::kNotFound && !answer.error().maybe_applied();
  if (missing) return std::optional<FlexStatus>();
  return answer;
}

}  // namespace volumed
