// PoolUuids: which pool has which uuid, so that a copy of a pool's directory does not become a
// second pool of one uuid: the ids of both would be of one pool, and each would have the other's
// volumes for its own.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "pool/pool_record.h"

namespace volumed {

// Threads: any. Blocks: never.
class PoolUuids {
 public:
  // `has_rows` says whether a volume or a cut of the pool of this name is, or may be, on record.
  PoolUuids(std::set<std::string> configured, std::function<bool(const std::string&)> has_rows)
      : configured_(std::move(configured)), has_rows_(std::move(has_rows)) {}

  // What is on record of a pool, also of one that is not configured any more.
  void Restore(const PoolRecord& record) EXCLUDES(mu_);
  // Takes the uuid for this pool, of which nothing is on record yet. A directory whose pool is not
  // configured any more may get another name, unless volumes or cuts are on record by the old one:
  // nobody would count what they were promised. Errors: FailedPrecondition, not applied, if another
  // pool has the uuid, naming that one.
  Status Take(const PoolRecord& found) EXCLUDES(mu_);
  // The same for one that is on record, which had another name meanwhile: it gets the directory
  // back unless volumes or cuts are on record by that one.
  Status CheckNoOtherName(const PoolRecord& found) EXCLUDES(mu_);

 private:
  // Whether the other one is this directory by a name that is configured no more.
  bool IsFormerName(const PoolRecord& other, const PoolRecord& found) const;
  Status CheckNoRows(const PoolRecord& other) const;

  const std::set<std::string> configured_;  // names
  const std::function<bool(const std::string&)> has_rows_;
  Mutex mu_;
  std::map<std::string, PoolRecord> pools_ GUARDED_BY(mu_);  // by name
};

}  // namespace volumed
