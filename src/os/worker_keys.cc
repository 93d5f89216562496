#include "os/worker_keys.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace volumed {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr char kPrefix[] = "worker-";
// More keys than the page has room for: whoever comes later takes it for all there are.
constexpr uint64_t kAllKeys = UINT64_MAX;
constexpr size_t kAboutBytes = 1024;
constexpr size_t kMostKeys = (kPageBytes - kAboutBytes) / sizeof(uint64_t) - 1;

// FNV-1a, 64 bits.
uint64_t SumOf(const std::string& key) {
  uint64_t sum = 14695981039346656037ull;
  for (const char c : key) {
    sum ^= static_cast<unsigned char>(c);
    sum *= 1099511628211ull;
  }
  return sum;
}

Error KeysError(const std::string& path) {
  return Error::FromErrno(errno, "make the page of a worker's keys, " + path, Outcome::kNotApplied);
}

}  // namespace

struct WorkerKeys::Page {
  std::atomic<uint64_t> count;
  std::array<std::atomic<uint64_t>, kMostKeys> sums;
  std::array<char, kAboutBytes> about;  // ends with a NUL
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
};

WorkerKeys::WorkerKeys(std::string path, Descriptor lock, Page* page)
    : path_(std::move(path)), lock_(std::move(lock)), page_(page) {
  static_assert(sizeof(Page) == kPageBytes);
}

WorkerKeys::WorkerKeys(WorkerKeys&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::move(other.lock_)),
      page_(std::exchange(other.page_, nullptr)) {}

WorkerKeys::~WorkerKeys() {
  if (page_ != nullptr) ::munmap(page_, kPageBytes);
}

Result<WorkerKeys> WorkerKeys::Create(const std::string& directory) {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != sizeof(number)) return KeysError(directory);
  char name[32];
  std::snprintf(name, sizeof(name), "%s%016" PRIx64, kPrefix, number);
  const std::string path = directory + "/" + name;
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  Descriptor lock(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600));
  if (!lock.valid()) return KeysError(path);
  // Of an open file of its own: a mapping keeps its file's lock.
  const Descriptor mapped(::open(path.c_str(), kFlags));
  // The room is taken now, for whoever writes to a page without any is ended by a signal.
  const bool has_room = mapped.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 &&
                        ::fallocate(mapped.get(), 0, 0, kPageBytes) == 0;
  void* const page =
      has_room ? ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, mapped.get(), 0)
               : MAP_FAILED;
  if (page != MAP_FAILED) return WorkerKeys(path, std::move(lock), static_cast<Page*>(page));
  const Error error = KeysError(path);
  ::unlink(path.c_str());
  return error;
}

Result<WorkerKeys> WorkerKeys::Inherit(int page) {
  struct stat stat = {};
  const bool is_page = ::fstat(page, &stat) == 0 && S_ISREG(stat.st_mode) &&
                       stat.st_size == static_cast<off_t>(kPageBytes);
  void* const mapped =
      is_page ? ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0)
              : MAP_FAILED;
  if (mapped == MAP_FAILED) {
    return Error::NotApplied(Code::kInvalidArgument, "the worker has no page for its keys");
  }
  return WorkerKeys("", Descriptor(), static_cast<Page*>(mapped));
}

void WorkerKeys::Write(const std::vector<std::string>& keys, const std::string& about) {
  const bool has_room = keys.size() <= kMostKeys;
  for (size_t i = 0; has_room && i < keys.size(); ++i) {
    page_->sums[i].store(SumOf(keys[i]), std::memory_order_relaxed);
  }
  page_->about[about.copy(page_->about.data(), kAboutBytes - 1)] = '\0';
  page_->count.store(has_room ? keys.size() : kAllKeys, std::memory_order_release);
}

void WorkerKeys::LetGo() { page_->count.store(0, std::memory_order_release); }

void WorkerKeys::RemoveFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
  path_.clear();
}

// ---- others' ------------------------------------------------------------------------------------

namespace {

// A page as whoever comes later reads it.
struct ReadPage {
  bool is_whole = false;
  uint64_t count = 0;
  std::array<uint64_t, kMostKeys> sums = {};
  std::array<char, kAboutBytes> about = {};

  explicit ReadPage(int file) {
    std::array<char, kPageBytes> bytes = {};
    is_whole = ::pread(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    const char* from = bytes.data();
    std::memcpy(&count, from, sizeof(count));
    std::memcpy(sums.data(), from + sizeof(count), sizeof(sums));
    std::memcpy(about.data(), from + sizeof(count) + sizeof(sums), kAboutBytes - 1);
  }
  // One that was cut tells nothing, and may hold anything.
  bool MayHave(const std::string& key) const {
    if (!is_whole || count > kMostKeys) return true;
    const auto* const end = sums.data() + count;
    return std::find(sums.data(), end, SumOf(key)) != end;
  }
};

// True, and the file is removed, if no process has it locked.
bool RemoveIfDead(const std::string& path, int file) {
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return false;
  ::unlink(path.c_str());
  return true;
}

}  // namespace

Result<KeysOfOthers> KeysOfOthers::Read(const std::string& directory) {
  const auto close = [](DIR* opened) { ::closedir(opened); };
  const std::unique_ptr<DIR, decltype(close)> listing(::opendir(directory.c_str()), close);
  if (listing == nullptr) {
    return Error::FromErrno(errno, "read the keys of workers, " + directory, Outcome::kNotApplied);
  }
  KeysOfOthers others;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (!name.starts_with(kPrefix)) continue;
    const std::string path = directory + "/" + name;
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file.valid() || RemoveIfDead(path, file.get())) continue;
    others.files_.emplace(path, std::move(file));
  }
  return others;
}

void KeysOfOthers::DropDead() {
  std::erase_if(files_, [](const auto& one) { return RemoveIfDead(one.first, one.second.get()); });
}

Status KeysOfOthers::Check(const std::vector<std::string>& keys) {
  DropDead();
  for (const auto& [path, file] : files_) {
    const ReadPage page(file.get());
    const auto taken = std::find_if(keys.begin(), keys.end(),
                                    [&page](const std::string& key) { return page.MayHave(key); });
    if (taken == keys.end()) continue;
    return Error::NotApplied(Code::kAborted, "an earlier worker still holds key " + *taken +
                                                 ", of an agent before this one: " +
                                                 page.about.data() + "; it ends once that answers");
  }
  return OkStatus();
}

int KeysOfOthers::Busy() {
  DropDead();
  return static_cast<int>(std::count_if(files_.begin(), files_.end(), [](const auto& one) {
    return ReadPage(one.second.get()).count != 0;
  }));
}

// ---- all ----------------------------------------------------------------------------------------

Status TakenKeys::Take(const std::vector<std::string>& keys, const std::string& about) {
  if (keys.empty()) return OkStatus();
  RETURN_IF_ERROR(others_.Check(keys));
  for (const std::string& key : keys) {
    const auto taken = own_.find(key);
    if (taken == own_.end()) continue;
    return Error::NotApplied(Code::kAborted,
                             "an earlier worker still holds key " + key + ": " + taken->second);
  }
  for (const std::string& key : keys) own_.emplace(key, about);
  return OkStatus();
}

void TakenKeys::GiveBack(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) own_.erase(key);
}

}  // namespace volumed
