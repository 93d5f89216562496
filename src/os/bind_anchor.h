// BindAnchor: a private, childless clone of the mount that holds the agent's own root. Binds cloned
// from it cost the same however many mounts there are, because the kernel looks through the
// children of the mount that is cloned, and never join the peer group of a shared root. Source:
// measured; Linux fs/namespace.c (__do_loopback, has_locked_children).
//
// It shares its superblock with the agent's root, so it pins that filesystem and no other. Mounts
// made later below a bind's source do not appear in the bind: callers that need that bind from the
// source itself (a hostPath with propagation).
#pragma once

#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any. Blocks: the first use makes the anchor (microseconds; without statmount one read of
// the mount table).
class BindAnchor {
 public:
  // An empty `agent_root`, or features without mount_setattr, make an anchor that serves nothing.
  // Without open_tree_detached_clone the clone must be attached: it appears as a mount point at
  // <agent_root>/.bind-anchor, is shared by all workers and stays when they go.
  BindAnchor(const KernelFeatures& features, std::string agent_root);

  // The same file or directory as `source`, reached through the anchor; invalid when the anchor
  // does not serve it: another mount, a name that no longer leads there. Then bind from the source.
  Descriptor Find(const SafePath& source_path, const Descriptor& source) EXCLUDES(mu_);

  // Why the anchor serves nothing; empty while it does.
  std::string disabled_reason() const EXCLUDES(mu_);

 private:
  void Make() REQUIRES(mu_);
  Status MakeFrom(const Descriptor& root) REQUIRES(mu_);
  Status Attach(Descriptor clone) REQUIRES(mu_);

  const KernelFeatures features_;
  const std::string agent_root_;

  mutable Mutex mu_;
  bool made_ GUARDED_BY(mu_) = false;
  std::string disabled_reason_ GUARDED_BY(mu_);
  Descriptor anchor_ GUARDED_BY(mu_);        // the clone's root
  std::string mount_point_ GUARDED_BY(mu_);  // of the mount that was cloned
  uint64_t mount_id_ GUARDED_BY(mu_) = 0;    // of the mount that was cloned
};

}  // namespace volumed
