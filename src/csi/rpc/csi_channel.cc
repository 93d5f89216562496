#include "csi/rpc/csi_channel.h"

#include <optional>

#include "base/mutex.h"
#include "csi/rpc/csi_channel_core.h"

namespace volumed {

Result<std::unique_ptr<CsiChannel>> CsiChannel::Create(CsiChannelOptions options,
                                                       const Clock& clock, CsiStateWatch& watch) {
  if (options.width < 1) {
    return Error::NotApplied(Code::kInvalidArgument,
                             options.driver + ": a width below 1 lets no call through");
  }
  auto core = std::make_shared<Core>(std::move(options), clock, watch);
  RETURN_IF_ERROR(core->Dial().With(core->driver()));
  return std::unique_ptr<CsiChannel>(new CsiChannel(std::move(core)));
}

CsiChannel::~CsiChannel() { core_->Close(); }

void CsiChannel::Start(const google::protobuf::Message& request, const CsiCallOptions& options,
                       Done done) {
  const std::shared_ptr<Core> core = core_;
  core->Start(request, options, std::move(done));
}

CsiChannel::AnyAnswer CsiChannel::Perform(const google::protobuf::Message& request,
                                          const CsiCallOptions& options) {
  struct Waiter {
    Mutex mu;
    CondVar answered;
    std::optional<AnyAnswer> answer GUARDED_BY(mu);
  };
  const auto waiter = std::make_shared<Waiter>();
  Start(request, options, [waiter](AnyAnswer answer) {
    MutexLock lock(waiter->mu);
    waiter->answer = std::move(answer);
    waiter->answered.NotifyAll();
  });
  MutexLock lock(waiter->mu);
  while (!waiter->answer) waiter->answered.Wait(waiter->mu);
  return std::move(*waiter->answer);
}

void CsiChannel::Reconnect() {
  // What it could fail by, Create() has refused.
  (void)core_->Dial();
}

CsiConnection CsiChannel::connection() const { return core_->connection(); }

std::vector<CsiOpenCall> CsiChannel::Open() const { return core_->Open(); }

const std::string& CsiChannel::driver() const { return core_->driver(); }

Status CsiChannel::CheckAnswer(const google::protobuf::Message& request,
                               const google::protobuf::Descriptor* response) {
  const CsiMethod* method = CsiMethodOf(request.GetDescriptor());
  if (method != nullptr && method->response == response) return OkStatus();
  return Error::NotApplied(
      Code::kInvalidArgument,
      request.GetDescriptor()->full_name() + " is not answered by " + response->full_name());
}

}  // namespace volumed
