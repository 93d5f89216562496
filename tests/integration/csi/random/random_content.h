// What may be in volumes that random clients write to, as the test's model has it: each write is
// numbered and goes to one block, so that the content of a volume is that after some write, and
// nothing else. What a snapshot or a clone has is that of its source at one moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace volumed::random_clients {

inline constexpr size_t kBlockBytes = 4096;
// Of a volume; write n goes to block (n - 1) % kBlocks, over what was written there before.
inline constexpr size_t kBlocks = 16;

// What was read of a volume: kBlocks of kBlockBytes.
using Blocks = std::vector<std::string>;

// What a volume has that nobody has written to.
Blocks EmptyBlocks();
size_t PlaceOfWrite(uint64_t number);
// The block of one write of one volume; its bytes follow from both, and are checked by its sum.
std::string BlockOfWrite(uint64_t tag, uint64_t number);

// What was written to a volume, in its order: a write begins once the one before it is on the disk.
//
// Threads: any; writes are noted by one at a time.
class WriteHistory {
 public:
  // A blank volume. `tag` is the volume's alone.
  explicit WriteHistory(uint64_t tag) : tag_(tag) {}
  // A volume with another one's content, of which it is not known yet after which of its writes.
  // Nothing may be written before Continue().
  static std::shared_ptr<WriteHistory> OfContent(uint64_t tag);

  // It has the content of `base` after this write. REQUIRES: knows_base() is false.
  void Continue(std::shared_ptr<const WriteHistory> base, uint64_t last) EXCLUDES(mu_);
  bool knows_base() const EXCLUDES(mu_);

  // The number of the next write. One that was not acknowledged is issued again: whether it is in
  // the volume is not known. `now` orders the writes of all volumes.
  uint64_t Issue(uint64_t now) EXCLUDES(mu_);
  void Acknowledge(uint64_t number, uint64_t now) EXCLUDES(mu_);
  uint64_t issued() const EXCLUDES(mu_);
  uint64_t acknowledged() const EXCLUDES(mu_);

  // Whose write this is: the volume's own, or that of the volume whose content it was made with.
  uint64_t TagOf(uint64_t number) const EXCLUDES(mu_);
  // When it was first issued; 0 if it was there before the volume was.
  uint64_t IssuedAt(uint64_t number) const EXCLUDES(mu_);
  // Nullopt while it was not acknowledged.
  std::optional<uint64_t> AcknowledgedAt(uint64_t number) const EXCLUDES(mu_);
  uint64_t tag() const { return tag_; }

 private:
  struct Write {
    uint64_t issued_at = 0;
    std::optional<uint64_t> acknowledged_at;
  };
  const Write* Find(uint64_t number) const REQUIRES(mu_);

  const uint64_t tag_;
  mutable Mutex mu_;
  bool knows_base_ GUARDED_BY(mu_) = true;
  std::shared_ptr<const WriteHistory> base_ GUARDED_BY(mu_);
  uint64_t base_last_ GUARDED_BY(mu_) = 0;
  std::vector<Write> writes_ GUARDED_BY(mu_);  // from base_last_ + 1 on
};

// After which write the volume was as the blocks are.
struct Prefix {
  uint64_t last = 0;
  std::string problem;  // empty if they are one moment of the history
};
Prefix PrefixIn(const WriteHistory& history, const Blocks& blocks);
// Likewise, and no earlier than `least`, no later than `most`.
Prefix PrefixBetween(const WriteHistory& history, const Blocks& blocks, uint64_t least,
                     uint64_t most);

// What was taken of a volume at one moment between two: a snapshot's or a clone's content. Whoever
// reads it first learns which moment that was, and all others must find the same.
//
// Threads: any.
class CutContent {
 public:
  // `least`: all that was acknowledged before the cut began; `most`: all that was issued when it
  // was there.
  CutContent(std::shared_ptr<const WriteHistory> of, uint64_t least, uint64_t most)
      : of_(std::move(of)), least_(least), most_(most) {}

  Prefix Learn(const Blocks& blocks) EXCLUDES(mu_);
  std::optional<uint64_t> learned() const EXCLUDES(mu_);
  const std::shared_ptr<const WriteHistory>& of() const { return of_; }

 private:
  const std::shared_ptr<const WriteHistory> of_;
  const uint64_t least_;
  const uint64_t most_;
  mutable Mutex mu_;
  std::optional<uint64_t> learned_ GUARDED_BY(mu_);
};

// Why the members, as far as they are learned, are not of one moment; empty if they may be. They
// are not if one has a write that began after the end of another one's that is missing.
std::string WhyNotOneMoment(const std::vector<std::shared_ptr<const CutContent>>& members);

}  // namespace volumed::random_clients
