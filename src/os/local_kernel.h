// LocalKernel: the Kernel that does the effects, in the calling thread, by system calls. It runs
// inside a volumed-worker, where what hangs can be killed.
//
// Uniform answers, which FakeKernel shares:
//  - a malformed SafePath: InvalidArgument, not applied, no errno;
//  - a link in the way: ELOOP (ENOTDIR where it is the root of the SafePath, or where its target is
//    not looked at because a directory is asked for); a way out of the root: EXDEV;
//  - "missing", where a request answers it without an error, is ENOENT, of the last component or of
//    any before it; a component that is no directory is the error ENOTDIR;
//  - a failed system call: the code that base/result.h gives its errno; "not applied" unless an
//    earlier step of the same request had already changed something;
//  - a request that sees its CancelToken set: Cancelled; not applied if nothing was changed yet.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "os/bind_anchor.h"
#include "os/kernel.h"
#include "os/tool.h"

namespace volumed {

struct LocalKernelOptions {
  std::vector<std::string> masked_features;  // names as in KernelFeatures
  // Binds whose source lies on this directory's own mount use an anchor. Empty: none do.
  std::string agent_root;
  // Where mkfs.* and fsck.* are looked for.
  std::vector<std::string> tool_directories = SystemToolDirectories();
  // volumed-worker, which is started as the thawer of a CutFrozen (os/thawer.h). Empty: CutFrozen
  // is Unimplemented.
  std::string thawer = {};
};

// Threads: any; effects on one path must not run at the same time.
// Blocks: as the kernel does. Deadlines, keys and domains are not looked at: they are the pool's.
class LocalKernel final : public Kernel {
 public:
  // Errors: InvalidArgument, not applied, for an unknown feature name.
  static Result<std::unique_ptr<LocalKernel>> Create(const LocalKernelOptions& options);
  ~LocalKernel() override;

  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override;

 private:
  LocalKernel(const KernelFeatures& features, const LocalKernelOptions& options);

  const KernelFeatures features_;
  const std::vector<std::string> tool_directories_;
  const std::string thawer_;
  BindAnchor anchor_;
};

}  // namespace volumed
