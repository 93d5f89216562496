// TreeWalk: visits everything below a directory, on that directory's mount only, by descriptors and
// never through a link. Small trees are walked by the caller's thread; when a tree turns out big, a
// second one takes directories from it (warm caches gain from two, not from more; measured).
//
// Neither depth nor breadth costs descriptors without bound: past a limit a directory is closed and
// found again from above, name by name, and must then be the same one.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/work_meter.h"

namespace volumed {

// One entry that the walk has come to. What it refers to is valid during Visit() alone.
struct WalkEntry {
  int directory;  // where it lies, open for reading; the walk's own
  const char* name;
  const struct statx& stat;  // STATX_BASIC_STATS, of the entry itself, never of a link's target
};

// What is done at each entry. Threads: called by `thread` 0 and 1 at the same time, once per entry,
// in no order, but for a directory before what lies in it.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  // Returns 0, and the walk goes on; ENOENT if the entry has vanished, and it goes on, but not into
  // it; any other errno ends the walk, which then fails with it.
  virtual int Visit(int thread, const WalkEntry& entry) = 0;
};

constexpr int kWalkThreads = 2;

// Mount points below the root are passed over without a visit. Entries that vanish meanwhile are no
// failure, nor is a directory that cannot be found again.
//
// Threads: one; the visitor's are its own. Blocks: as the filesystem does. Visitor and meter
// outlive the walk.
class TreeWalk {
 public:
  // `display` is the root's path, for errors.
  TreeWalk(TreeVisitor& visitor, WorkMeter& meter, std::string display);
  ~TreeWalk();

  // Visits everything below `root` (open for reading), without `root` itself. REQUIRES: called
  // once.
  // Errors: the first failure with its path, or Cancelled as soon as the meter says so. Both say
  // not applied, for the walk itself changes nothing: what the visitor changed, its owner knows.
  Status Run(Descriptor root) EXCLUDES(mu_);

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;

  void WorkOn(int thread) EXCLUDES(mu_);
  NodePtr Next(std::vector<NodePtr>& own) EXCLUDES(mu_);
  void Share(std::vector<NodePtr>& own) EXCLUDES(mu_);
  void ReadDirectory(int thread, const NodePtr& node, std::vector<NodePtr>& own,
                     std::vector<char>& block);
  bool ReadEntry(int thread, const NodePtr& node, int directory, const char* name,
                 std::vector<NodePtr>& children);
  std::shared_ptr<const Descriptor> Open(const NodePtr& node);
  std::shared_ptr<const Descriptor> FindOpen(const Node& node) EXCLUDES(open_mu_);
  void KeepOpen(const NodePtr& node, std::shared_ptr<const Descriptor> directory)
      EXCLUDES(open_mu_);
  void Fail(const Node& node, const char* name, int sys_errno) EXCLUDES(mu_);
  std::string PathOf(const Node& node, const char* name) const;
  bool MayStartSecondThread() EXCLUDES(mu_);

  TreeVisitor& visitor_;
  WorkMeter& meter_;
  const std::string display_;
  uint64_t mount_id_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<int> idle_{0};  // threads that wait for work

  // Guards Node::directory too.
  Mutex open_mu_;
  std::deque<std::weak_ptr<Node>> open_ GUARDED_BY(open_mu_);  // the oldest first

  Mutex mu_;
  CondVar work_or_end_;
  std::vector<NodePtr> shared_ GUARDED_BY(mu_);
  int working_ GUARDED_BY(mu_) = 1;
  bool second_started_ GUARDED_BY(mu_) = false;
  bool ended_ GUARDED_BY(mu_) = false;
  std::optional<Error> failure_ GUARDED_BY(mu_);
};

}  // namespace volumed
