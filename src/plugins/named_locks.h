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

// Locks with names; one caller at a time holds a name. Threads: any.
class NamedLocks {
 public:
  class Held {
   public:
    Held(NamedLocks& locks, std::string name) : locks_(locks), name_(std::move(name)) {}
    ~Held() { locks_.Release(name_); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    NamedLocks& locks_;
    const std::string name_;
  };
  // Blocks: until the name is free. Errors, not applied: DeadlineExceeded, Cancelled.
  Result<std::unique_ptr<Held>> Hold(const std::string& name, const Clock& clock,
                                     const CallOptions& call);

 private:
  void Release(const std::string& name);

  Mutex mu_;
  CondVar free_;
  std::set<std::string> held_ GUARDED_BY(mu_);
};

}  // namespace volumed
