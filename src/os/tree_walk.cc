#include "os/tree_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "os/directory_reader.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

// Directories kept open for what lies below them. Beyond it the oldest are closed, and found again
// from above when they are needed.
constexpr size_t kMaxOpenDirectories = 256;
// Of a long way down, so many of the last directories are kept: those above the one that is wanted
// are wanted next, and a tree of two deep branches is not walked down anew for each of its levels.
constexpr size_t kKeepOfWay = 128;
// A thread costs about 50 us, so many entries of a walk.
constexpr int64_t kBigTree = 4096;

constexpr unsigned kOpenFlags = O_RDONLY | O_DIRECTORY;

}  // namespace

// A directory that is read, or will be. It lives as long as something below it may need it.
struct TreeWalk::Node {
  Node(NodePtr up, std::string own_name) : parent(std::move(up)), name(std::move(own_name)) {}
  // Unlinks long chains one by one: their destructors would recurse as deep as the tree.
  ~Node() {
    NodePtr up = std::move(parent);
    while (up != nullptr && up.use_count() == 1) up = std::move(up->parent);
  }

  NodePtr parent;
  const std::string name;
  std::shared_ptr<const Descriptor> directory;  // under open_mu_; always there for the top
  uint64_t inode = 0;                           // as the parent's entry showed it
};

TreeWalk::TreeWalk(TreeVisitor& visitor, WorkMeter& meter, std::string display)
    : visitor_(visitor), meter_(meter), display_(std::move(display)) {}
TreeWalk::~TreeWalk() = default;

std::string TreeWalk::PathOf(const Node& node, const char* name) const {
  std::vector<const std::string*> names;
  for (const Node* up = &node; up->parent != nullptr; up = up->parent.get()) {
    names.push_back(&up->name);
  }
  std::string path = display_;
  for (auto it = names.rbegin(); it != names.rend(); ++it) path += "/" + **it;
  return name != nullptr ? path + "/" + name : path;
}

void TreeWalk::Fail(const Node& node, const char* name, int sys_errno) {
  stop_.store(true, std::memory_order_relaxed);
  MutexLock lock(mu_);
  if (failure_) return;
  failure_ = Error::FromErrno(sys_errno, PathOf(node, name), Outcome::kNotApplied);
}

std::shared_ptr<const Descriptor> TreeWalk::FindOpen(const Node& node) {
  MutexLock lock(open_mu_);
  return node.directory;
}

void TreeWalk::KeepOpen(const NodePtr& node, std::shared_ptr<const Descriptor> directory) {
  MutexLock lock(open_mu_);
  node->directory = std::move(directory);
  open_.push_back(node);
  if (open_.size() <= kMaxOpenDirectories) return;
  if (const NodePtr oldest = open_.front().lock()) oldest->directory.reset();
  open_.pop_front();
}

// The directory of `node`, from the nearest one above that is open. Null, with errno, on failure.
std::shared_ptr<const Descriptor> TreeWalk::Open(const NodePtr& node) {
  std::vector<const NodePtr*> way;  // up
  std::shared_ptr<const Descriptor> current;
  for (const NodePtr* up = &node; (current = FindOpen(**up)) == nullptr; up = &(*up)->parent) {
    way.push_back(up);
  }
  const bool found_again = way.size() > 1;
  while (!way.empty()) {
    const NodePtr& next = *way.back();
    Descriptor opened(OpenChild(current->get(), next->name.c_str(),
                                static_cast<int>(next == node ? kOpenFlags : O_PATH | O_DIRECTORY),
                                RESOLVE_NO_XDEV));
    if (!opened.valid()) return nullptr;
    struct stat stat = {};
    // Exchanged since it was seen: as good as vanished.
    if (found_again && (::fstat(opened.get(), &stat) != 0 || stat.st_ino != next->inode)) {
      errno = ENOENT;
      return nullptr;
    }
    current = std::make_shared<const Descriptor>(std::move(opened));
    if (next != node && way.size() <= kKeepOfWay) KeepOpen(next, current);
    way.pop_back();
  }
  return current;
}

// False when the walk shall stop.
bool TreeWalk::ReadEntry(int thread, const NodePtr& node, int directory, const char* name,
                         std::vector<NodePtr>& children) {
  struct statx stat = {};
  // DONT_SYNC: what is mounted here may hang when it is asked.
  if (::statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
              STATX_BASIC_STATS | STATX_MNT_ID, &stat) != 0) {
    if (errno == ENOENT) return true;
    Fail(*node, name, errno);
    return false;
  }
  if ((stat.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 || stat.stx_mnt_id != mount_id_) {
    return true;
  }
  const int failure = visitor_.Visit(thread, {directory, name, stat});
  if (failure == ENOENT) return true;
  if (failure != 0) {
    Fail(*node, name, failure);
    return false;
  }
  if (S_ISDIR(stat.stx_mode)) {
    children.push_back(std::make_shared<Node>(node, name));
    children.back()->inode = stat.stx_ino;
  }
  return true;
}

void TreeWalk::ReadDirectory(int thread, const NodePtr& node, std::vector<NodePtr>& own,
                             std::vector<char>& block) {
  const std::shared_ptr<const Descriptor> opened = Open(node);
  if (opened == nullptr) {
    // Vanished, exchanged for something else, or mounted over meanwhile.
    const bool gone = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV;
    if (!gone) Fail(*node, nullptr, errno);
    return;
  }
  const int directory = opened->get();
  std::vector<NodePtr> children;
  DirectoryReader reader(directory, block);
  RawEntry entry = {};
  int64_t seen = 0;
  while (reader.Next(entry)) {
    if (!ReadEntry(thread, node, directory, entry.name, children)) return;
    if (++seen % 64 == 0 && !meter_.Step(64)) stop_.store(true);
    if (stop_.load(std::memory_order_relaxed)) return;
  }
  if (reader.sys_errno() != 0) return Fail(*node, nullptr, reader.sys_errno());
  if (!meter_.Step(seen % 64)) stop_.store(true);
  if (!children.empty() && node->parent != nullptr) KeepOpen(node, opened);
  std::move(children.begin(), children.end(), std::back_inserter(own));
}

// Hands the older half of a thread's own work, which is nearer to the root and so bigger, to
// others.
void TreeWalk::Share(std::vector<NodePtr>& own) {
  const auto middle = own.begin() + static_cast<std::ptrdiff_t>((own.size() + 1) / 2);
  MutexLock lock(mu_);
  std::move(own.begin(), middle, std::back_inserter(shared_));
  own.erase(own.begin(), middle);
  work_or_end_.NotifyAll();
}

// Null when the walk is over.
TreeWalk::NodePtr TreeWalk::Next(std::vector<NodePtr>& own) {
  if (!own.empty()) {
    NodePtr node = std::move(own.back());
    own.pop_back();
    return node;
  }
  MutexLock lock(mu_);
  --working_;
  idle_.fetch_add(1, std::memory_order_relaxed);
  while (shared_.empty() && !ended_) {
    if (working_ == 0 || stop_.load()) {
      ended_ = true;
      work_or_end_.NotifyAll();
      break;
    }
    work_or_end_.Wait(mu_);
  }
  idle_.fetch_sub(1, std::memory_order_relaxed);
  ++working_;
  if (shared_.empty() || ended_) return nullptr;
  NodePtr node = std::move(shared_.back());
  shared_.pop_back();
  return node;
}

bool TreeWalk::MayStartSecondThread() {
  if (meter_.done() < kBigTree || std::thread::hardware_concurrency() < 2) return false;
  MutexLock lock(mu_);
  if (second_started_) return false;
  second_started_ = true;
  ++working_;
  return true;
}

void TreeWalk::WorkOn(int thread) {
  std::vector<NodePtr> own;
  std::vector<char> block(kDirectoryBlockBytes);
  std::thread second;
  while (NodePtr node = Next(own)) {
    ReadDirectory(thread, node, own, block);
    node.reset();
    if (stop_.load(std::memory_order_relaxed)) own.clear();
    if (own.size() < 2) continue;
    if (idle_.load(std::memory_order_relaxed) > 0) {
      Share(own);
    } else if (thread == 0 && !second.joinable() && MayStartSecondThread()) {
      Share(own);
      try {
        second = std::thread([this] { WorkOn(1); });
      } catch (const std::system_error&) {
        // No thread to be had: this one goes on alone.
        MutexLock lock(mu_);
        --working_;
      }
    }
  }
  if (second.joinable()) second.join();
}

Status TreeWalk::Run(Descriptor root) {
  struct statx stat = {};
  if (::statx(root.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID,
              &stat) != 0) {
    return Error::FromErrno(errno, display_, Outcome::kNotApplied);
  }
  mount_id_ = stat.stx_mnt_id;
  auto top = std::make_shared<Node>(nullptr, "");
  top->directory = std::make_shared<const Descriptor>(std::move(root));
  {
    MutexLock lock(mu_);
    shared_.push_back(std::move(top));
  }
  WorkOn(0);
  MutexLock lock(mu_);
  shared_.clear();
  if (failure_) return *failure_;
  if (stop_.load()) {
    return WorkMeter::CancelledError(Outcome::kNotApplied).With(display_);
  }
  return OkStatus();
}

}  // namespace volumed
