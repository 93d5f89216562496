// CsiFakeProcess: a fake CSI driver in a process of its own, which can be killed and stopped, and
// started again with what it knew.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "fakes/csi_fake_driver.h"

namespace volumed {

// Threads: one at a time, and that one outlives the process. Blocks: for the process.
class CsiFakeProcess {
 public:
  // Not started.
  explicit CsiFakeProcess(CsiFakeOptions options) : options_(std::move(options)) {}
  // Ends the process. What it has mounted stays: CsiFakeWorld::Clear().
  ~CsiFakeProcess();
  CsiFakeProcess(const CsiFakeProcess&) = delete;
  CsiFakeProcess& operator=(const CsiFakeProcess&) = delete;

  // Starts it, and waits until it listens. False: it did not begin to within 20 seconds.
  bool Start();
  bool runs();
  // To it alone, if it runs; after SIGSTOP it has stopped.
  void Signal(int signal) const;
  void Kill();           // and waits for its end
  bool WaitUntilDead();  // 20 seconds at most
  // As CsiFakeDriver::Tell(). "": nobody answers.
  std::string Tell(std::string_view command) const;
  void Script(std::string_view rules) const { Tell(R"({"script": )" + std::string(rules) + "}"); }

  // They hold from the next start on.
  CsiFakeOptions& options() { return options_; }
  pid_t pid() const { return pid_; }

 private:
  std::string control() const { return options_.directory + "/control.sock"; }

  CsiFakeOptions options_;
  pid_t pid_ = -1;
};

}  // namespace volumed
