#include "plugins/iscsi_admin.h"

#include <algorithm>
#include <cerrno>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr char kEmptyValue[] = "<empty>";
// A target array may offer a thousand targets.
constexpr size_t kDiscoveryOutput = size_t{64} << 10;

// In words, where an administrator needs them; "" for the rest, whose output says it.
std::string Meaning(int exit_status) {
  switch (static_cast<IscsiExit>(exit_status)) {
    case IscsiExit::kNoAnswerFromDaemon:
    case IscsiExit::kDaemonNotRunning:
      return "iscsid does not answer: see that iscsid.service of the package open-iscsi runs";
    case IscsiExit::kAuthenticationFailed:
      return "the target refuses the login: see the CHAP secret, and the target's list of "
             "initiators";
    case IscsiExit::kTransportTimeout:
      return "the portal does not answer";
    case IscsiExit::kTransportNotFound:
      return "the kernel's transport is missing: load iscsi_tcp, which open-iscsi does at start";
    case IscsiExit::kSuccess:
    case IscsiExit::kSessionNotFound:
    case IscsiExit::kLoginFailed:
    case IscsiExit::kDatabase:
    case IscsiExit::kSessionExists:
    case IscsiExit::kFatalLogin:
    case IscsiExit::kNoObjectsFound:
      break;
  }
  return "";
}

Code CodeOf(int exit_status) {
  switch (static_cast<IscsiExit>(exit_status)) {
    case IscsiExit::kNoAnswerFromDaemon:
    case IscsiExit::kDaemonNotRunning:
    case IscsiExit::kTransportTimeout:
      return Code::kUnavailable;
    case IscsiExit::kAuthenticationFailed:
      return Code::kUnauthenticated;
    case IscsiExit::kNoObjectsFound:
    case IscsiExit::kSessionNotFound:
      return Code::kNotFound;
    case IscsiExit::kTransportNotFound:
      return Code::kFailedPrecondition;
    case IscsiExit::kSuccess:
    case IscsiExit::kLoginFailed:
    case IscsiExit::kDatabase:
    case IscsiExit::kSessionExists:
    case IscsiExit::kFatalLogin:
      break;
  }
  return Code::kInternal;
}

Error EndError(const std::vector<std::string>& arguments, const ProgramEnd& end) {
  std::string text =
      "iscsiadm " + Join(arguments, " ") + " ended with " + std::to_string(end.exit_status);
  if (const std::string meaning = Meaning(end.exit_status); !meaning.empty()) {
    text += " (" + meaning + ")";
  }
  const std::string_view said = TrimSpace(end.output);
  if (!said.empty()) text += ": " + std::string(said);
  return Error::MaybeApplied(CodeOf(end.exit_status), text);
}

}  // namespace

IscsiIface ParseIfaceShow(const std::string& output) {
  IscsiIface iface;
  for (const std::string& line : Split(output, '\n')) {
    const size_t equals = line.find(" = ");
    if (line.starts_with('#') || equals == std::string::npos) continue;
    const std::string value(TrimSpace(std::string_view(line).substr(equals + 3)));
    if (value.empty() || value == kEmptyValue) continue;
    iface.settings[std::string(TrimSpace(std::string_view(line).substr(0, equals)))] = value;
  }
  const auto transport = iface.settings.find("iface.transport_name");
  if (transport != iface.settings.end()) iface.transport = transport->second;
  return iface;
}

std::vector<DiscoveredPortal> ParseDiscovery(const std::string& output) {
  std::vector<DiscoveredPortal> found;
  for (const std::string& line : Split(output, '\n')) {
    const std::vector<std::string> words = SplitNonEmpty(line, ' ');
    if (words.size() != 2) continue;
    const size_t comma = words[0].rfind(',');
    if (comma == std::string::npos || !ParseInt64(words[0].substr(comma + 1))) continue;
    found.push_back({words[0].substr(0, comma), words[0].substr(comma + 1), words[1]});
  }
  return found;
}

Result<ProgramEnd> IscsiAdmin::Run(std::vector<std::string> arguments, const CallOptions& call,
                                   bool is_discovery) {
  CallOptions bounded = call;
  const Deadline own = Deadline::After(clock_, options_.timeout);
  if (own.when() < call.deadline.when()) bounded.deadline = own;
  RunProgram run;
  run.arguments = std::move(arguments);
  run.arguments.insert(run.arguments.begin(), options_.program);
  if (is_discovery) run.output_bytes = kDiscoveryOutput;
  // It talks to the portal itself, which the agent's service may not; iscsid does the rest.
  run.own_scope = is_discovery;
  Result<ProgramEnd> end = kernel_.Call(run, bounded);
  if (end.ok() || end.error().sys_errno() != ENOENT) return end;
  return Error::NotApplied(Code::kNotFound, options_.program +
                                                " is missing: iSCSI volumes need the package "
                                                "open-iscsi, and its iscsid.service");
}

Status IscsiAdmin::Do(const std::vector<std::string>& arguments,
                      const std::vector<IscsiExit>& tolerated, const CallOptions& call) {
  ASSIGN_OR_RETURN(const ProgramEnd end, Run(arguments, call));
  const auto ended = static_cast<IscsiExit>(end.exit_status);
  if (ended == IscsiExit::kSuccess ||
      std::find(tolerated.begin(), tolerated.end(), ended) != tolerated.end()) {
    return OkStatus();
  }
  return EndError(arguments, end);
}

Status IscsiAdmin::DoWithNode(const IscsiDisk& disk, const std::string& portal,
                              const std::vector<std::string>& what,
                              const std::vector<IscsiExit>& tolerated, const CallOptions& call) {
  std::vector<std::string> arguments = {"-m", "node",   "-p", portal,
                                        "-T", disk.iqn, "-I", disk.iface};
  arguments.insert(arguments.end(), what.begin(), what.end());
  return Do(arguments, tolerated, call);
}

Result<IscsiIface> IscsiAdmin::ShowIface(const std::string& iface, const CallOptions& call) {
  const std::vector<std::string> arguments = {"-m", "iface", "-I", iface, "-o", "show"};
  ASSIGN_OR_RETURN(const ProgramEnd end, Run(arguments, call));
  if (end.exit_status == 0) return ParseIfaceShow(end.output);
  const Error error = EndError(arguments, end);
  return Error::FromParts(error.code(), Outcome::kNotApplied, 0, error.message());  // a question
}

Status IscsiAdmin::CloneIface(const IscsiDisk& disk, const IscsiIface& original,
                              const CallOptions& call) {
  RETURN_IF_ERROR(
      Do({"-m", "iface", "-I", disk.iface, "-o", "new"}, {IscsiExit::kSessionExists}, call));
  std::map<std::string, std::string> settings = original.settings;
  settings["iface.initiatorname"] = disk.initiator_name;
  settings.erase("iface.iscsi_ifacename");
  std::vector<std::string> update = {"-m", "iface", "-I", disk.iface, "-o", "update"};
  for (const auto& [name, value] : settings) {
    update.insert(update.end(), {"-n", name, "-v", value});
  }
  return Do(update, {IscsiExit::kSessionExists}, call);
}

Status IscsiAdmin::DeleteIface(const std::string& iface, const CallOptions& call) {
  return Do({"-m", "iface", "-I", iface, "-o", "delete"},
            {IscsiExit::kDatabase, IscsiExit::kNoObjectsFound}, call);
}

Result<std::vector<DiscoveredPortal>> IscsiAdmin::Discover(const std::string& portal,
                                                           const std::string& iface,
                                                           bool from_record,
                                                           const CallOptions& call) {
  std::vector<std::string> arguments = {
      "-m", from_record ? "discoverydb" : "discovery", "-t", "sendtargets", "-p", portal, "-I",
      iface};
  if (from_record) arguments.emplace_back("--discover");
  arguments.insert(arguments.end(), {"-o", "nonpersistent"});
  ASSIGN_OR_RETURN(const ProgramEnd end, Run(arguments, call, true));
  if (end.exit_status != 0) return EndError(arguments, end);
  return ParseDiscovery(end.output);
}

Status IscsiAdmin::NewDiscoveryRecord(const std::string& portal, const std::string& iface,
                                      const CallOptions& call) {
  return Do({"-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface, "-o", "new"}, {},
            call);
}

Status IscsiAdmin::DeleteDiscoveryRecord(const std::string& portal, const std::string& iface,
                                         const CallOptions& call) {
  return Do({"-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface, "-o", "delete"},
            {IscsiExit::kNoObjectsFound}, call);
}

Status IscsiAdmin::NewNode(const IscsiDisk& disk, const std::string& portal,
                           const std::string& group, const CallOptions& call) {
  return DoWithNode(disk, group.empty() ? portal : portal + "," + group, {"-o", "new"}, {}, call);
}

Status IscsiAdmin::SetNode(const IscsiDisk& disk, const std::string& portal,
                           const std::map<std::string, std::string>& settings,
                           const CallOptions& call) {
  std::vector<std::string> update = {"-o", "update"};
  for (const auto& [name, value] : settings) {
    update.insert(update.end(), {"-n", name, "-v", value});
  }
  return DoWithNode(disk, portal, update, {}, call);
}

Status IscsiAdmin::DeleteNode(const IscsiDisk& disk, const std::string& portal,
                              const CallOptions& call) {
  return DoWithNode(disk, portal, {"-o", "delete"},
                    {IscsiExit::kSessionNotFound, IscsiExit::kNoObjectsFound}, call);
}

Status IscsiAdmin::Login(const IscsiDisk& disk, const std::string& portal,
                         const CallOptions& call) {
  return DoWithNode(disk, portal, {"--login"}, {IscsiExit::kSessionExists}, call);
}

Status IscsiAdmin::Logout(const IscsiDisk& disk, const std::string& portal,
                          const CallOptions& call) {
  return DoWithNode(disk, portal, {"--logout"},
                    {IscsiExit::kSessionNotFound, IscsiExit::kNoObjectsFound}, call);
}

}  // namespace volumed
