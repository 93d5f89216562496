// NamedLocks: lets one caller at a time work on a name (an iSCSI target). Private to plugins.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Locks with names; one caller at a time has a name. Threads: any.
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
  // Blocks: until the name is free. Errors, not applied: DeadlineExceeded, Cancelled.
  Result<std::unique_ptr<Guard>> Lock(const std::string& name, const Clock& clock,
                                      const CallOptions& call);

 private:
  void Release(const std::string& name);

  Mutex mu_;
  CondVar free_;
  std::set<std::string> locked_ GUARDED_BY(mu_);
};

}  // namespace volumed
