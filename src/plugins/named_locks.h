// NamedLocks: lets one caller at a time work on a name (an iSCSI target, or a portal). Private to
// plugins.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// It is not recursive: a caller that has a name and asks for it again waits for itself. Threads:
// any. A Guard must not outlive the locks.
class NamedLocks {
 public:
  class Guard {
   public:
    Guard(NamedLocks& locks, std::string name) : locks_(locks), name_(std::move(name)) {}
    ~Guard() { locks_.Release(name_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    NamedLocks& locks_;
    const std::string name_;
  };
  // The name is the caller's as long as the guard lives. Blocks: until the name is free, or until
  // the call's deadline; a cancelled call is noticed within a second. Errors, not applied:
  // DeadlineExceeded, Cancelled.
  Result<std::unique_ptr<Guard>> Lock(const std::string& name, const Clock& clock,
                                      const CallOptions& call);

 private:
  void Release(const std::string& name);

  Mutex mu_;
  CondVar free_;
  std::set<std::string> locked_ GUARDED_BY(mu_);
};

}  // namespace volumed
