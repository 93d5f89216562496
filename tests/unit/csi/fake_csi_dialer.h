// FakeCsiDialer: sockets and processes of a test, in simulated time: which socket there is at a
// path, who listens at it, and what that process answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/simulated_scheduler.h"
#include "csi.pb.h"
#include "csi/csi_caller.h"
#include "csi/rpc/csi_methods.h"
#include "csi/rpc/csi_outcome.h"
#include "pluginregistration.pb.h"

namespace volumed {

// A process that serves any RPC. What is not scripted is answered with an empty message.
class FakeCsiProcess {
 public:
  using Handler = std::function<CsiChannel::AnyAnswer(const google::protobuf::Message& request)>;

  // By the RPC's name.
  void Handle(const std::string& rpc, Handler handler) { handlers_[rpc] = std::move(handler); }
  template <typename Response>
  void Answer(const std::string& rpc, const Response& response) {
    Handle(rpc, [response](const google::protobuf::Message&) -> CsiChannel::AnyAnswer {
      return std::unique_ptr<google::protobuf::Message>(std::make_unique<Response>(response));
    });
  }
  void Fail(const std::string& rpc, Code code, const std::string& text) {
    Handle(rpc, [=](const google::protobuf::Message&) -> CsiChannel::AnyAnswer {
      return Error::NotApplied(code, rpc + ": " + text);
    });
  }
  void Hang(const std::string& rpc) { hangs_.insert(rpc); }
  void Unhang(const std::string& rpc) { hangs_.erase(rpc); }
  int calls(const std::string& rpc) const {
    const auto found = calls_.find(rpc);
    return found == calls_.end() ? 0 : found->second;
  }
  // Calls about volumes of sources that the driver has replaced.
  int migrated_calls() const { return migrated_; }
  bool accepts = true;  // connections; false: it never speaks

 private:
  friend class FakeCsiDialer;
  friend class FakeCsiCaller;
  std::map<std::string, Handler> handlers_;
  std::set<std::string> hangs_;
  std::map<std::string, int> calls_;
  int migrated_ = 0;
  bool alive_ = true;
};

class FakeCsiCaller final : public CsiCaller, public std::enable_shared_from_this<FakeCsiCaller> {
 public:
  FakeCsiCaller(SimulatedScheduler& scheduler, std::shared_ptr<FakeCsiProcess> process,
                CsiDialer::StateSeen state_seen)
      : scheduler_(scheduler), process_(std::move(process)), state_seen_(std::move(state_seen)) {}

  void Start(const google::protobuf::Message& request, const CsiCallOptions& options,
             CsiChannel::Done done) override {
    const std::string rpc = CsiMethodOf(request.GetDescriptor())->name;
    Take(request, options);
    if (ended_) return Later(done, Error::NotApplied(Code::kCancelled, "ended"));
    if (!process_->alive_) return Later(done, NoConnection());
    ++process_->calls_[rpc];
    if (process_->hangs_.count(rpc) > 0) {
      const uint64_t id = ++last_id_;
      waiting_[id] = std::move(done);
      scheduler_.PostAfter(
          options.deadline.Remaining(scheduler_.clock()), [weak = weak_from_this(), id, rpc] {
            if (const auto self = weak.lock()) {
              self->EndWait(
                  id, Error::MaybeApplied(Code::kDeadlineExceeded, rpc + ": Deadline Exceeded"));
            }
          });
      return;
    }
    auto answer = std::make_shared<CsiChannel::AnyAnswer>(AnswerTo(rpc, request));
    scheduler_.RunBlocking([answer, done = std::move(done)] { done(std::move(*answer)); });
  }
  CsiChannel::AnyAnswer Perform(const google::protobuf::Message& request,
                                const CsiCallOptions& options) override {
    const std::string rpc = CsiMethodOf(request.GetDescriptor())->name;
    Take(request, options);
    if (!process_->alive_) return NoConnection();
    ++process_->calls_[rpc];
    if (process_->hangs_.count(rpc) == 0) return AnswerTo(rpc, request);
    scheduler_.manual_clock().AdvanceTo(options.deadline.when());
    return Error::MaybeApplied(Code::kDeadlineExceeded, rpc + ": Deadline Exceeded");
  }
  void End() override {
    ended_ = true;
    EndAll(Error::MaybeApplied(Code::kCancelled, "ended"));
  }

  bool ended() const { return ended_; }
  void Connected() {
    if (process_->alive_ && !process_->accepts) return;
    Tell(process_->alive_ ? CsiConnectionState::kReady : CsiConnectionState::kTransientFailure);
  }
  void Broken() {
    Tell(CsiConnectionState::kTransientFailure);
    EndAll(Error::MaybeApplied(Code::kUnavailable, "Socket closed"));
  }
  bool IsTo(const FakeCsiProcess& process) const { return process_.get() == &process; }

 private:
  // What a channel does with them.
  void Take(const google::protobuf::Message& request, const CsiCallOptions& options) {
    (void)CsiSecrets(request, options.secrets);
    if (options.migrated) ++process_->migrated_;
  }
  static Error NoConnection() {
    return Error::NotApplied(Code::kUnavailable, "no connection").About(kCsiNeverSent);
  }
  void Tell(CsiConnectionState state) {
    scheduler_.RunBlocking([seen = state_seen_, state] { seen(state); });
  }
  void Later(const CsiChannel::Done& done, const Error& error) {
    scheduler_.RunBlocking([done, error] { done(error); });
  }
  CsiChannel::AnyAnswer AnswerTo(const std::string& rpc, const google::protobuf::Message& request) {
    const auto handler = process_->handlers_.find(rpc);
    if (handler != process_->handlers_.end()) return handler->second(request);
    const google::protobuf::Descriptor* type = CsiMethodOf(request.GetDescriptor())->response;
    return std::unique_ptr<google::protobuf::Message>(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  }
  void EndWait(uint64_t id, const Error& error) {
    const auto found = waiting_.find(id);
    if (found == waiting_.end()) return;
    const CsiChannel::Done done = std::move(found->second);
    waiting_.erase(found);
    done(error);
  }
  void EndAll(const Error& error) {
    while (!waiting_.empty()) EndWait(waiting_.begin()->first, error);
  }

  SimulatedScheduler& scheduler_;
  const std::shared_ptr<FakeCsiProcess> process_;
  const CsiDialer::StateSeen state_seen_;
  bool ended_ = false;
  uint64_t last_id_ = 0;
  std::map<uint64_t, CsiChannel::Done> waiting_;
};

class FakeCsiDialer final : public CsiDialer {
 public:
  explicit FakeCsiDialer(SimulatedScheduler& scheduler) : scheduler_(scheduler) {}

  // ---- The test's side ----
  // A process listens at the path; the file is a new one.
  std::shared_ptr<FakeCsiProcess> Listen(const std::string& path) {
    auto process = std::make_shared<FakeCsiProcess>();
    Listen(path, process);
    return process;
  }
  void Listen(const std::string& path, std::shared_ptr<FakeCsiProcess> process) {
    files_[path] = {.inode = ++last_inode_, .process = std::move(process), .error = {}};
  }
  // There is a socket, and nobody listens; the file is a new one.
  void Bind(const std::string& path) { files_[path] = {++last_inode_, nullptr, {}}; }
  void Refuse(const std::string& path, const Error& error) { files_[path].error = error; }
  void Allow(const std::string& path) { files_[path].error.reset(); }
  // The file stays.
  void Kill(const std::shared_ptr<FakeCsiProcess>& process) {
    process->alive_ = false;
    for (const auto& weak : callers_) {
      const auto caller = weak.lock();
      if (caller != nullptr && caller->IsTo(*process)) caller->Broken();
    }
  }
  // As a listener does that goes away and comes back at the same file.
  void BreakConnections(const std::shared_ptr<FakeCsiProcess>& process) {
    Kill(process);
    process->alive_ = true;
  }
  void Remove(const std::string& path) { files_.erase(path); }
  int opened(const std::string& path) const {
    const auto found = opened_.find(path);
    return found == opened_.end() ? 0 : found->second;
  }
  int dialled() const { return dialled_; }
  // Callers that somebody has.
  int callers() const {
    int count = 0;
    for (const auto& weak : callers_) count += weak.expired() ? 0 : 1;
    return count;
  }

  // ---- CsiDialer ----
  Result<std::shared_ptr<const CsiSocket>> Open(const SafePath& place, Deadline) override {
    const std::string path = place.Display();
    ++opened_[path];
    const auto found = files_.find(path);
    if (found == files_.end()) return Error::NotApplied(Code::kNotFound, "no " + path);
    const File& file = found->second;
    if (file.error) return *file.error;
    if (file.process == nullptr || !file.process->alive_) {
      return Error::NotApplied(Code::kUnavailable, "nobody listens at " + path);
    }
    return std::make_shared<const CsiSocket>(path, 0, SocketIdentity{1, file.inode}, Descriptor());
  }
  Result<std::shared_ptr<CsiCaller>> Dial(const std::string& /*driver*/,
                                          std::shared_ptr<const CsiSocket> socket,
                                          StateSeen state_seen) override {
    ++dialled_;
    const auto found = files_.find(socket->path());
    const bool is_same = found != files_.end() && found->second.inode == socket->identity().inode;
    auto process = is_same ? found->second.process : std::make_shared<FakeCsiProcess>();
    if (!is_same) process->alive_ = false;
    auto caller = std::make_shared<FakeCsiCaller>(scheduler_, process, std::move(state_seen));
    callers_.push_back(caller);
    caller->Connected();
    return std::shared_ptr<CsiCaller>(caller);
  }

 private:
  struct File {
    uint64_t inode = 0;
    std::shared_ptr<FakeCsiProcess> process;
    std::optional<Error> error;
  };
  SimulatedScheduler& scheduler_;
  uint64_t last_inode_ = 100;
  int dialled_ = 0;
  std::map<std::string, File> files_;
  std::map<std::string, int> opened_;
  std::vector<std::weak_ptr<FakeCsiCaller>> callers_;
};

}  // namespace volumed
