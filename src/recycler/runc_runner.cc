#include "recycler/runc_runner.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

namespace volumed {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// What a script that scrubs a volume calls.
constexpr const char* kApplets[] = {"sh",   "ls",    "find", "rm",  "rmdir", "test", "[",
                                    "true", "false", "echo", "cat", "sleep", "touch"};
// After the deadline of a run has passed, what is left must still be taken away.
constexpr auto kRemoveTimeout = std::chrono::seconds(10);

Status IoError(const std::error_code& error, const std::string& what) {
  if (!error) return OkStatus();
  return Error::FromErrno(error.value(), what, Outcome::kNotApplied);
}

Status CheckExecutable(const std::string& path, const char* package) {
  if (::access(path.c_str(), X_OK) == 0) return OkStatus();
  return Error::NotApplied(
      Code::kFailedPrecondition,
      path + " cannot be run on this node; it comes with the package " + package);
}

// What looks after a container must not wait for the key that a stuck runc of it still holds.
CallOptions WithoutKey(CallOptions call) {
  call.key.clear();
  return call;
}

// runc's own words, as against those of the container.
bool RuncWasForbidden(const std::string& output) {
  return output.find("runc run failed") != std::string::npos &&
         output.find("peration not permitted") != std::string::npos;
}

Json Mounts(const ContainerRun& run) {
  Json mounts = Json::array();
  mounts.push_back({{"destination", "/proc"}, {"type", "proc"}, {"source", "proc"}});
  mounts.push_back({{"destination", "/dev"},
                    {"type", "tmpfs"},
                    {"source", "tmpfs"},
                    {"options", {"nosuid", "mode=755", "size=64k"}}});
  for (const ContainerBind& bind : run.binds) {
    mounts.push_back({{"destination", bind.destination},
                      {"type", "bind"},
                      {"source", bind.source},
                      {"options", {"bind", bind.read_only ? "ro" : "rw", "nosuid", "nodev"}}});
  }
  return mounts;
}

}  // namespace

std::string OciConfig(const ContainerRun& run) {
  const Json capabilities = {"CAP_DAC_OVERRIDE", "CAP_FOWNER"};
  Json namespaces = Json::array();
  for (const char* type : {"pid", "network", "ipc", "uts", "mount"}) {
    namespaces.push_back({{"type", type}});
  }
  const Json config = {
      {"ociVersion", "1.0.2"},
      {"process",
       {{"terminal", false},
        {"user", {{"uid", 0}, {"gid", 0}}},
        {"args", run.command},
        {"env", {"PATH=/bin"}},
        {"cwd", "/"},
        {"noNewPrivileges", true},
        {"capabilities",
         {{"bounding", capabilities}, {"effective", capabilities}, {"permitted", capabilities}}}}},
      {"root", {{"path", "rootfs"}, {"readonly", true}}},
      {"hostname", "recycler"},
      {"mounts", Mounts(run)},
      {"linux",
       {{"namespaces", namespaces},
        {"maskedPaths", {"/proc/kcore", "/proc/keys", "/proc/sysrq-trigger"}},
        {"readonlyPaths", {"/proc/sys", "/proc/bus"}}}}};
  return config.dump();
}

RuncRunner::RuncRunner(RuncOptions options, Kernel& kernel, const Clock& clock)
    : options_(std::move(options)), kernel_(kernel), clock_(clock) {}

std::string RuncRunner::BundleOf(const std::string& id) const {
  return options_.directory + "/bundles/" + id;
}

Status RuncRunner::CheckPrograms() const {
  RETURN_IF_ERROR(CheckExecutable(options_.runc, "runc"));
  return CheckExecutable(options_.busybox, "busybox-static");
}

Status RuncRunner::MakeBundle(const ContainerRun& run) const {
  const std::string bundle = BundleOf(run.id);
  const std::string bin = bundle + "/rootfs/bin";
  std::error_code error;
  fs::create_directories(options_.directory, error);
  RETURN_IF_ERROR(IoError(error, "make " + options_.directory));
  fs::permissions(options_.directory, fs::perms::owner_all, error);
  RETURN_IF_ERROR(IoError(error, "restrict " + options_.directory));
  fs::create_directories(bin, error);
  RETURN_IF_ERROR(IoError(error, "make " + bin));
  // Where things are mounted has to be there: the root is read-only.
  for (const char* place : {"/proc", "/dev"}) {
    fs::create_directories(bundle + "/rootfs" + place, error);
    RETURN_IF_ERROR(IoError(error, std::string("make ") + place + " of the container"));
  }
  for (const ContainerBind& bind : run.binds) {
    fs::create_directories(bundle + "/rootfs" + bind.destination, error);
    RETURN_IF_ERROR(IoError(error, "make " + bind.destination + " of the container"));
  }
  fs::copy_file(options_.busybox, bin + "/busybox", fs::copy_options::overwrite_existing, error);
  RETURN_IF_ERROR(IoError(error, "copy " + options_.busybox));
  for (const char* applet : kApplets) {
    const std::string link = bin + "/" + applet;
    fs::remove(link, error);
    fs::create_symlink("busybox", link, error);
    RETURN_IF_ERROR(IoError(error, "make " + link));
  }
  std::ofstream config(bundle + "/config.json", std::ios::trunc);
  config << OciConfig(run);
  config.close();
  if (config) return OkStatus();
  return Error::NotApplied(Code::kUnavailable, "cannot write " + bundle + "/config.json");
}

Result<ProgramEnd> RuncRunner::Runc(std::vector<std::string> arguments,
                                    const CallOptions& call) const {
  std::vector<std::string> command = {options_.runc, "--root", options_.directory + "/runc"};
  command.insert(command.end(), std::make_move_iterator(arguments.begin()),
                 std::make_move_iterator(arguments.end()));
  return kernel_.Call(RunProgram{std::move(command)}, call);
}

Result<bool> RuncRunner::Exists(const std::string& id, const CallOptions& call) {
  RETURN_IF_ERROR(CheckPrograms());
  ASSIGN_OR_RETURN(const ProgramEnd end, Runc({"state", id}, WithoutKey(call)));
  if (end.exit_status == 0) return true;
  if (end.output.find("does not exist") != std::string::npos) return false;
  return Error::NotApplied(Code::kUnavailable, "runc state " + id + ": " + end.output);
}

Result<ContainerEnd> RuncRunner::Run(const ContainerRun& run, const CallOptions& call) {
  RETURN_IF_ERROR(CheckPrograms());
  RETURN_IF_ERROR(MakeBundle(run));
  // A session keyring of its own is refused by a service's sandbox, and of no use to a scrub.
  Result<ProgramEnd> end =
      Runc({"run", "--no-new-keyring", "--bundle", BundleOf(run.id), run.id}, call);
  if (!end.ok()) {
    // runc is gone, and its container may still run.
    CallOptions remove;
    remove.domain = call.domain;
    remove.deadline = Deadline::After(clock_, kRemoveTimeout);
    if (const Status removed = Remove(run.id, remove); !removed.ok()) {
      return end.error().With("the container may still run (" + removed.error().message() + ")");
    }
    return end.error();
  }
  if (end->exit_status != 0 && RuncWasForbidden(end->output)) {
    return Error::MaybeApplied(
        Code::kFailedPrecondition,
        "runc may not make a container here; under systemd the unit needs the drop-in runc.conf "
        "(docs/OPERATIONS.md): " +
            end->output);
  }
  return ContainerEnd{end->exit_status, std::move(end->output)};
}

Status RuncRunner::Remove(const std::string& id, const CallOptions& call) {
  ASSIGN_OR_RETURN(const bool exists, Exists(id, call));
  if (exists) {
    ASSIGN_OR_RETURN(const ProgramEnd end, Runc({"delete", "--force", id}, WithoutKey(call)));
    if (end.exit_status != 0) {
      return Error::MaybeApplied(Code::kUnavailable, "runc delete " + id + ": " + end.output);
    }
  }
  std::error_code error;
  fs::remove_all(BundleOf(id), error);  // runc's mounts were in a namespace of its own
  if (error) return Error::FromErrno(error.value(), "remove bundle " + id, Outcome::kMaybeApplied);
  return OkStatus();
}

}  // namespace volumed
