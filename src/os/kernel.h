// Kernel: every effect that the program has on a node, as request and answer values
// (os/kernel_requests.h).
//
// This one seam serves isolation (WorkerKernel sends a request to a worker process), the real thing
// (LocalKernel, inside a worker), tests and crash proofs (FakeKernel) and decorators (fault
// injection, counting, dry runs), which override one function. Every implementation fails to
// compile until it handles a new request, and so does the way to a worker until the request says
// what it is.
//
// It knows no Kubernetes word.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Asks a call to stop. It may be set from any thread; a request that sees it ends with Cancelled.
// It cannot be taken back, and outlives the calls that have it in their options.
class CancelToken {
 public:
  void Cancel();
  bool cancelled() const;
  // Calls `hook` at once if already cancelled, else when Cancel() is called, on that thread. There
  // is one hook at most: another one, or an empty one, takes its place, and the old one does not
  // run any more when this returns. The hook runs with the token's lock held, so it must not ask
  // the token.
  void OnCancel(std::function<void()> hook);

  CancelToken();
  ~CancelToken();
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// How a call is to be made; the defaults are a call without a limit of time on the agent's own
// filesystem.
struct CallOptions {
  Deadline deadline = Deadline::Infinite();
  // The volume that the effect belongs to. A worker holds an flock on this key's file while it
  // works, so that a new agent knows that an old worker is still busy there. Empty: none.
  std::string key;
  // The others that it belongs to, each locked likewise.
  std::vector<std::string> more_keys = {};
  // What may hang together: calls of one domain share a bounded number of workers, so that one dead
  // filesystem cannot occupy them all. Empty: the agent's own filesystem, which has the fast
  // worker.
  std::string domain;
  // Called now and then while a long request runs, on a thread of the implementation, with a count
  // of which the request says what it counts. Empty: nobody wants to know.
  std::function<void(int64_t done)> progress;
  // Null: the call cannot be cancelled.
  CancelToken* cancel = nullptr;
  // An effect of which half ruins data (mkfs, a copy). Its worker is never killed: the deadline
  // then only bounds the wait for a worker, and the call lasts as long as the work does.
  bool must_finish = false;
  // Descriptors that tools started by the effect keep open: the key's lock, so that the key stays
  // locked while such a tool outlives its worker, and one by which the agent sees that it does. A
  // worker sets them.
  std::vector<int> kept_by_tools = {};
  // Of a call that empties or deletes a volume, or gives it to a pod: its storage, as it was looked
  // at and approved. Its path may lead elsewhere by now, so the effect that deletes or binds has to
  // expect this object. Null: nobody looked.
  std::shared_ptr<const StorageIdentity> approved = nullptr;
  // Told of another program that the caller waits for, in words for people, and of "" once it does
  // not any more; on the caller's thread. It is nothing to an effect. Empty: nobody wants to know.
  std::function<void(const std::string& whom)> awaits = {};
};

// Threads: any. Blocks: until the answer or the deadline, whichever is first.
// Errors: those of each request; and DeadlineExceeded, maybe applied, when the worker did not
// answer in time; Unavailable, maybe applied, when it died; Unavailable, not applied, when none
// could be had.
class Kernel {
 public:
  virtual ~Kernel() = default;

  template <typename Request>
  Result<typename Request::Answer> Call(const Request& request, const CallOptions& options) {
    Result<AnyAnswer> answer = Perform(AnyRequest(request), options);
    if (!answer.ok()) return answer.error();
    // A worker of another release may answer otherwise.
    auto* const known = std::get_if<typename Request::Answer>(&answer.value());
    if (known != nullptr) return std::move(*known);
    return Error::MaybeApplied(Code::kDataLoss, "the worker's answer is that of another request");
  }

  // The answer's alternative is the request's Answer type. A composite request is made of calls of
  // Do(), unless this kernel takes it whole.
  Result<AnyAnswer> Perform(const AnyRequest& request, const CallOptions& options);

  // REQUIRES: the request is primitive, unless TakesComposites().
  virtual Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) = 0;
  // Whether Do() also takes composites, as a kernel does that sends them on whole.
  virtual bool TakesComposites() const { return false; }
};

}  // namespace volumed
