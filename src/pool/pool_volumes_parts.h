// What the files of PoolVolumes have in common, and nobody else sees: what a call has of a volume
// while it changes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pool/pool_volumes.h"

namespace volumed {

// Threads: one at a time. It gives back what was taken when it ends, however the call ends.
class PoolVolumes::Taken {
 public:
  Taken(PoolVolumes& owner, std::vector<std::string> keys)
      : owner_(&owner), keys_(std::move(keys)) {}
  Taken(Taken&& other) noexcept : owner_(other.owner_), keys_(std::move(other.keys_)) {
    other.keys_.clear();
  }
  Taken& operator=(Taken&&) = delete;
  ~Taken() {
    // What was moved away is given back by whoever has it now; the lock may be held here.
    if (keys_.empty()) return;
    MutexLock lock(owner_->mu_);
    for (const std::string& key : keys_) owner_->taken_.erase(key);
  }

 private:
  PoolVolumes* owner_;
  std::vector<std::string> keys_;
};

// Likewise of bytes that are promised, and not on record yet.
class PoolVolumes::Reservation {
 public:
  Reservation(PoolVolumes& owner, std::string id) : owner_(&owner), id_(std::move(id)) {}
  Reservation(Reservation&& other) noexcept : owner_(other.owner_), id_(std::move(other.id_)) {
    other.id_.clear();
  }
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation() {
    if (id_.empty()) return;
    MutexLock lock(owner_->mu_);
    owner_->reserved_.erase(id_);
  }

 private:
  PoolVolumes* owner_;
  std::string id_;  // empty: nothing is reserved
};

struct PoolVolumes::Held {
  Taken taken;
  PoolVolumeRecord record;
  PoolParameters parameters;
  PoolBackend* backend;
  CallOptions call;
};

struct PoolVolumes::HeldCut {
  Taken taken;
  PoolCutRecord record;
  PoolBackend* backend;
  CallOptions call;
};

struct PoolVolumes::Cutting {
  const Pool* pool = nullptr;
  PoolBackend* backend = nullptr;
  CallOptions call = {};
  std::vector<Held> sources = {};
  std::vector<Taken> cuts = {};
  std::vector<CutWish> wishes = {};
};

struct PoolVolumes::Making {
  PoolVolumeRecord& record;
  const PoolParameters& parameters;
  PoolBackend& backend;
  CallOptions call;  // in the pool
  // An earlier call may have made something.
  bool is_repeat = false;
  std::unique_ptr<HeldContent> content = nullptr;
};

// The options of effects in a pool: they share the lane of its path. Those for one volume lock its
// id too, so that a worker that outlives its agent is not overtaken.
inline CallOptions InPool(CallOptions call, const Pool& pool, const std::string& id = "") {
  call.domain = pool.path();
  if (id.empty() || call.key == id) return call;
  if (call.key.empty()) {
    call.key = id;
  } else {
    call.more_keys.push_back(id);
  }
  return call;
}

inline std::string NameKey(const std::string& name) { return "name/" + name; }

// Errors: FailedPrecondition, not applied, while it is made or deleted.
Status CheckUsable(const PoolVolumeRecord& record);

// An error of an effect. To a caller NotFound says that there is no such volume, and this one was
// found: something of it is missing.
Error AboutFilesOf(const std::string& id, const Error& error);

// In what the volume was made of something else, for people; empty if it was made of this. Pure.
std::string ContentDifference(const PoolVolumeRecord& there,
                              const std::optional<VolumeContent>& content);

// Source: linux fs/btrfs/ioctl.c (btrfs_ioctl_resize), which answers EINVAL below that.
inline constexpr int64_t kLeastResizedBtrfs = int64_t{256} << 20;

inline Error PoolRefusal(const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, why);
}

}  // namespace volumed
