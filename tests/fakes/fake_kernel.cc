#include "fakes/fake_kernel.h"

#include <algorithm>
#include <cerrno>
#include <type_traits>
#include <utility>
#include <variant>

#include "fakes/simulated_crash.h"

namespace volumed {
namespace {

bool IsAtOrBelow(const std::string& path, const std::string& ancestor) {
  if (ancestor.empty() || ancestor == "/") return true;
  return path.compare(0, ancestor.size(), ancestor) == 0 &&
         (path.size() == ancestor.size() || path[ancestor.size()] == '/');
}

// Every path of a request.
std::vector<SafePath> PathsOf(const AnyRequest& request) {
  return std::visit(
      [](const auto& r) {
        std::vector<SafePath> paths;
        if constexpr (requires { r.target; }) paths.push_back(r.target);
        if constexpr (requires { r.path; }) paths.push_back(r.path);
        if constexpr (requires { r.to; }) paths.push_back(r.to);
        if constexpr (requires { r.point; }) paths.push_back(r.point.mount_point);
        if constexpr (requires { r.cuts; }) {
          for (const FreezePoint& point : r.freeze) paths.push_back(point.mount_point);
          for (const CutPart& part : r.cuts) paths.push_back(part.to);
        }
        if constexpr (requires { r.device; }) paths.push_back({r.device, ""});
        if constexpr (std::is_same_v<std::decay_t<decltype(r)>, BindMount>) {
          paths.push_back(r.source);
        }
        return paths;
      },
      request);
}

bool IsAbout(const AnyRequest& request, const std::string& path) {
  const std::vector<SafePath> paths = PathsOf(request);
  return std::any_of(paths.begin(), paths.end(),
                     [&path](const SafePath& p) { return IsAtOrBelow(p.Display(), path); });
}

// What never asks the filesystem at `path`.
bool CannotHang(const AnyRequest& request, const std::string& path) {
  if (const auto* stat = std::get_if<Stat>(&request)) {
    return stat->only_mount_point && stat->path.Display() == path;
  }
  const auto* unmount = std::get_if<Unmount>(&request);
  return unmount != nullptr && unmount->force;
}

// Whether it may begin a write to the filesystem that its path lies on.
bool Writes(const AnyRequest& request) {
  return std::visit(
      [](const auto& r) {
        using R = std::decay_t<decltype(r)>;
        return std::is_same_v<R, WriteFile> || std::is_same_v<R, WriteAtomicPayload> ||
               std::is_same_v<R, MakeDirectory> || std::is_same_v<R, MakeFile> ||
               std::is_same_v<R, MakeSymlink> || std::is_same_v<R, RemoveFile> ||
               std::is_same_v<R, RemoveDirectory> || std::is_same_v<R, RemoveTree> ||
               std::is_same_v<R, ChangeOwnership> || std::is_same_v<R, MarkStorage> ||
               std::is_same_v<R, SetFileSize> || std::is_same_v<R, CloneFile> ||
               std::is_same_v<R, CopyFile> || std::is_same_v<R, MakeSubvolume> ||
               std::is_same_v<R, RemoveSubvolume> || std::is_same_v<R, SetTreeQuota> ||
               std::is_same_v<R, MoveDirectory> || std::is_same_v<R, CopyTree>;
      },
      request);
}

Error Inert() { return Error::NotApplied(Code::kUnavailable, "kernel: the agent has ended"); }

std::string AnswerText(const AnyAnswer& answer) {
  return std::visit(
      [](const auto& a) -> std::string {
        if constexpr (requires {
                        a.changed;
                        a.visited;
                      }) {
          return a.skipped ? "skipped" : std::to_string(a.changed) + " changed";
        } else if constexpr (requires { a.changed; }) {
          return a.changed ? "changed" : "unchanged";
        } else if constexpr (requires { a.is_mount_point; }) {
          return std::string(FileTypeName(a.type)) + (a.is_mount_point ? ", mounted" : "");
        } else {
          return "ok";
        }
      },
      answer);
}

std::string CallText(uint64_t number, const AnyRequest& request) {
  std::string text = std::to_string(number) + " " + std::string(RequestName(request));
  if (const auto* bind = std::get_if<BindMount>(&request)) text += " " + bind->source.Display();
  const std::string path = RequestPath(request);
  return path.empty() ? text : text + " " + path;
}

}  // namespace

FakeKernel::FakeKernel(FakeKernelOptions options) : options_(std::move(options)) {}
FakeKernel::~FakeKernel() = default;

// ---- a call -------------------------------------------------------------------------------------

Result<AnyAnswer> FakeKernel::Do(const AnyRequest& request, const CallOptions& options) {
  HangHook hang_hook;
  std::function<void(const AnyRequest&)> call_hook;
  {
    MutexLock lock(mu_);
    if (inert_) return Inert();
    call_hook = call_hook_;
  }
  if (call_hook) call_hook(request);
  {
    MutexLock lock(mu_);
    if (inert_) return Inert();
    if (FindHung(request) != nullptr) hang_hook = hang_hook_;
  }
  // The clock moves on before the call is answered.
  if (hang_hook) hang_hook(request, options.deadline);
  const std::optional<Begun> begun = Begin(request, options);
  if (!begun) return Inert();
  // Outside of the lock: both may change this world.
  std::optional<ProgramEnd> end;
  if (begun->program) end = begun->program();
  if (begun->attribute) begun->attribute();
  return Finish(request, options, *begun, end ? &*end : nullptr);
}

std::optional<FakeKernel::Begun> FakeKernel::Begin(const AnyRequest& request,
                                                   const CallOptions& options) {
  MutexLock lock(mu_);
  if (inert_) return std::nullopt;
  Begun begun;
  begun.number = ++calls_;
  begun.line = log_.size();
  log_.push_back(CallText(calls_, request));
  if (crash_ && crash_->call == calls_ && crash_->point == CrashPoint::kBefore) {
    inert_ = true;
    log_.back() += " -> the agent ends before it";
    throw SimulatedCrash{};
  }
  begun.plan = PlanCall(request, options);
  if (crash_ && crash_->call == calls_ && crash_->point == CrashPoint::kInside) {
    begun.plan.half = true;
  }
  if (begun.plan.apply) FindWhatItSetsOff(request, &begun);
  return begun;
}

void FakeKernel::FindWhatItSetsOff(const AnyRequest& request, Begun* begun) {
  const auto path_of = [this](const std::string& path) REQUIRES(mu_) {
    FakeWalk walk;
    walk.follow_last = true;
    FakeLocation found;
    return vfs_.WalkAbsolute(path, walk, &found) == 0 ? vfs_.PathOf(found) : std::string();
  };
  if (const auto* run = std::get_if<RunProgram>(&request)) {
    const auto program = programs_.find(run->arguments.empty() ? "" : path_of(run->arguments[0]));
    if (program == programs_.end()) return;
    std::vector<std::string> words = run->arguments;
    for (const auto& [number, text] : run->secret_arguments) words.at(number) = text.Reveal();
    begun->program = [this, run = program->second, words = std::move(words)] {
      return run(*this, words);
    };
  } else if (const auto* write = std::get_if<WriteAttribute>(&request)) {
    const auto attribute = attributes_.find(path_of(write->path.Display()));
    if (attribute == attributes_.end()) return;
    begun->attribute = [this, effect = attribute->second, value = write->value] {
      effect(*this, value);
    };
  }
}

Result<AnyAnswer> FakeKernel::Finish(const AnyRequest& request, const CallOptions& options,
                                     const Begun& begun, const ProgramEnd* program_end) {
  MutexLock lock(mu_);
  const Plan& plan = begun.plan;
  Result<AnyAnswer> answer =
      plan.apply ? Apply(request, options, program_end, plan.half) : Result<AnyAnswer>(*plan.error);
  if (plan.error) answer = *plan.error;
  std::string& line = log_.at(begun.line);
  line += " -> " + (answer.ok() ? AnswerText(*answer) : answer.error().ToString());
  if (crash_ && crash_->call == begun.number) {
    inert_ = true;
    line += ", and the agent ends";
    throw SimulatedCrash{};
  }
  return answer;
}

Result<AnyAnswer> FakeKernel::Apply(const AnyRequest& request, const CallOptions& options,
                                    const ProgramEnd* program_end, bool half) {
  const FakeEffectState state{
      vfs_,        anchor_, devices_, programs_, payloads_, options_.features, options_.agent_root,
      program_end, half};
  FakeEffects effects(state, options);
  effects.Settle();
  Result<AnyAnswer> answer = effects.Do(request);
  effects.Settle();
  return answer;
}

FakeKernel::Plan FakeKernel::PlanCall(const AnyRequest& request, const CallOptions& options) {
  const Hung* hung = FindHung(request);
  const bool is_cancelled = options.cancel != nullptr && options.cancel->cancelled();
  if (hung != nullptr) {
    Error error = is_cancelled
                      ? Error::MaybeApplied(Code::kCancelled, "cancelled while it hung")
                      : Error::MaybeApplied(Code::kDeadlineExceeded,
                                            std::string(RequestName(request)) + " " +
                                                RequestPath(request) + ": no answer in time");
    return Plan{std::move(error), hung->apply};
  }
  if (is_cancelled) return Plan{Error::NotApplied(Code::kCancelled, "cancelled"), false};
  if (IsBlocked(request)) {
    blocked_writes_.push_back(CallText(calls_, request));
    return Plan{Error::MaybeApplied(Code::kDeadlineExceeded, std::string(RequestName(request)) +
                                                                 " " + RequestPath(request) +
                                                                 ": its filesystem is frozen"),
                false};
  }
  if (clock_ != nullptr && options.deadline.Passed(*clock_)) {
    return Plan{Error::NotApplied(Code::kDeadlineExceeded, "no worker became free in time"), false};
  }
  if (const std::optional<Plan> fault = TakeFault(request)) return *fault;
  return Plan{};
}

std::optional<FakeKernel::Plan> FakeKernel::TakeFault(const AnyRequest& request) {
  if (const auto at = faults_at_.find(calls_); at != faults_at_.end()) {
    const Plan plan{at->second.error, at->second.apply};
    faults_at_.erase(at);
    return plan;
  }
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    if (!fault->request.empty() && fault->request != RequestName(request)) continue;
    if (!fault->below.empty() && !IsAbout(request, fault->below)) continue;
    const Plan plan{fault->error, fault->apply, fault->half};
    if (--fault->count == 0) faults_.erase(fault);
    return plan;
  }
  return std::nullopt;
}

const FakeKernel::Hung* FakeKernel::FindHung(const AnyRequest& request) const {
  if (hung_.empty()) return nullptr;
  for (const auto& [path, hung] : hung_) {
    if (CannotHang(request, path)) continue;
    if (IsAbout(request, path)) return &hung;
    if (hung.filesystem == 0) continue;
    for (const SafePath& asked : PathsOf(request)) {
      FakeWalk walk;
      walk.follow_last = true;
      FakeLocation found;
      if (vfs_.WalkAbsolute(asked.Display(), walk, &found) != 0) continue;
      if (vfs_.FilesystemAt(found).id == hung.filesystem) return &hung;
    }
  }
  return nullptr;
}

bool FakeKernel::IsBlocked(const AnyRequest& request) const {
  if (!Writes(request)) return false;
  for (const SafePath& path : PathsOf(request)) {
    // What is to be made lies where its directory does.
    for (std::string at = path.Display(); !at.empty(); at.resize(at.rfind('/'))) {
      FakeLocation found;
      if (vfs_.WalkAbsolute(at, FakeWalk{}, &found) != 0) continue;
      if (vfs_.FilesystemAt(found).frozen) return true;
      break;
    }
  }
  return false;
}

// ---- faults -------------------------------------------------------------------------------------

void FakeKernel::FailNext(std::string_view request, Error error, int count, bool apply) {
  FailNextBelow(request, "", std::move(error), count, apply);
}

void FakeKernel::FailNext(std::string_view request, int sys_errno, Outcome outcome, int count) {
  FailNext(request, Error::FromErrno(sys_errno, "injected fault", outcome), count);
}

void FakeKernel::FailNextBelow(std::string_view request, const std::string& path, Error error,
                               int count, bool apply) {
  MutexLock lock(mu_);
  faults_.push_back(Fault{std::string(request), path, std::move(error), count, apply});
}

void FakeKernel::CutOffNext(std::string_view request) {
  MutexLock lock(mu_);
  Error died = Error::MaybeApplied(Code::kUnavailable, "the worker died");
  faults_.push_back(Fault{std::string(request), "", std::move(died), 1, true, true});
}

void FakeKernel::LetThawerWin(int count) {
  MutexLock lock(mu_);
  devices_.thawer_wins = count;
}

void FakeKernel::FailAt(uint64_t n, Error error, bool apply) {
  MutexLock lock(mu_);
  faults_at_.insert_or_assign(n, Fault{"", "", std::move(error), 1, apply});
}

void FakeKernel::Hang(const std::string& path, bool apply) {
  MutexLock lock(mu_);
  hung_[path] = Hung{RootFilesystem(path), apply};
}

void FakeKernel::Unhang(const std::string& path) {
  MutexLock lock(mu_);
  hung_.erase(path);
}

void FakeKernel::SetHangHook(HangHook hook) {
  MutexLock lock(mu_);
  hang_hook_ = std::move(hook);
}

void FakeKernel::SetClock(const Clock* clock) {
  MutexLock lock(mu_);
  clock_ = clock;
}

void FakeKernel::SetCallHook(std::function<void(const AnyRequest& request)> hook) {
  MutexLock lock(mu_);
  call_hook_ = std::move(hook);
}

void FakeKernel::CrashAtCall(uint64_t n, CrashPoint point) {
  MutexLock lock(mu_);
  crash_ = Crash{n, point};
}

bool FakeKernel::crashed() const {
  MutexLock lock(mu_);
  return inert_;
}

void FakeKernel::Die() {
  MutexLock lock(mu_);
  inert_ = true;
}

void FakeKernel::Revive() {
  MutexLock lock(mu_);
  inert_ = false;
  crash_.reset();
  faults_.clear();
  faults_at_.clear();
  hung_.clear();
  calls_ = 0;
  log_.clear();
  blocked_writes_.clear();
  devices_.thawer_wins = 0;
  // The anchor belongs to the workers, which end with their agent; an attached one is found again.
  if (anchor_.mount != 0 && vfs_.GetMount(anchor_.mount).parent == 0) {
    vfs_.DropDetached(anchor_.mount);
  }
  anchor_ = FakeAnchor();
}

void FakeKernel::Reboot() {
  MutexLock lock(mu_);
  hung_.clear();
  if (anchor_.mount != 0 && vfs_.GetMount(anchor_.mount).parent == 0) {
    vfs_.DropDetached(anchor_.mount);
  }
  anchor_ = FakeAnchor();
  vfs_.Reboot();
  devices_.loop_files.clear();
  devices_.locks.clear();
  const FakeEffectState state{vfs_,      anchor_,           devices_,           programs_,
                              payloads_, options_.features, options_.agent_root};
  FakeEffects(state, {}).DropLoops();
  for (auto& [path, device] : devices_.by_path) {
    device.identity.disk_sequence = ++devices_.last_sequence;
  }
}

std::unique_ptr<FakeKernel> FakeKernel::Clone() const {
  MutexLock lock(mu_);
  auto copy = std::make_unique<FakeKernel>(options_);
  MutexLock copy_lock(copy->mu_);
  copy->vfs_ = vfs_;
  copy->anchor_ = anchor_;
  copy->devices_ = devices_;
  copy->programs_ = programs_;
  copy->attributes_ = attributes_;
  // Whoever has a device open has it in the world that was copied.
  for (auto& [path, device] : copy->devices_.by_path) device.pins.clear();
  copy->devices_.locks.clear();
  copy->payloads_ = payloads_;
  return copy;
}

uint64_t FakeKernel::call_count() const {
  MutexLock lock(mu_);
  return calls_;
}

std::vector<std::string> FakeKernel::call_log() const {
  MutexLock lock(mu_);
  return log_;
}

std::string FakeKernel::CallLogText() const {
  std::string text;
  for (const std::string& line : call_log()) text += line + "\n";
  return text;
}

}  // namespace volumed
