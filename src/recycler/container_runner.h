// ContainerRunner: runs one container to its end.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

struct ContainerBind {
  std::string source;       // absolute path on the node
  std::string destination;  // absolute path in the container
  bool read_only = false;
};

// What is to be run. The id is the caller's and has no slash.
struct ContainerRun {
  std::string id;
  std::vector<std::string> command;  // with its arguments
  std::vector<ContainerBind> binds;
};

// How a container ended. An exit status other than zero is no error of Run().
struct ContainerEnd {
  int exit_status = 0;
  std::string output;  // the end of it
};

// Threads: one call at a time per id. Blocks: until the call's deadline.
class ContainerRunner {
 public:
  virtual ~ContainerRunner() = default;
  // Whether a container of this id is there, running or not.
  virtual Result<bool> Exists(const std::string& id, const CallOptions& call) = 0;
  // Runs it until it has ended. DeadlineExceeded, maybe applied, if it has not by then: it is
  // killed.
  virtual Result<ContainerEnd> Run(const ContainerRun& run, const CallOptions& call) = 0;
  // Kills it if it runs, and removes what is left. One that is not there is success.
  virtual Status Remove(const std::string& id, const CallOptions& call) = 0;
};

}  // namespace volumed
