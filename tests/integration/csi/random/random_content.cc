#include "integration/csi/random/random_content.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace volumed::random_clients {
namespace {

constexpr uint64_t kMagic = 0x766f6c756d656421;

// What a block begins with.
struct BlockHead {
  uint64_t magic = kMagic;
  uint64_t tag = 0;
  uint64_t number = 0;
  uint64_t sum = 0;
};

// Source: SplitMix64.
uint64_t Mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// Source: FNV-1a.
uint64_t SumOf(const std::string& bytes) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return sum;
}

BlockHead HeadOf(const std::string& block) {
  BlockHead head;
  std::memcpy(&head, block.data(), sizeof(head));
  return head;
}

// The write that is last of those to this block, if `last` is the last of all; 0: none is.
uint64_t LastAt(size_t place, uint64_t last) {
  if (last <= place) return 0;
  return last - (last - 1 - place) % kBlocks;
}

std::string Shown(const std::string& block) {
  if (block == std::string(kBlockBytes, '\0')) return "empty";
  const BlockHead head = HeadOf(block);
  if (head.magic != kMagic) return "no block of this test";
  return "write " + std::to_string(head.number) + " of volume " + std::to_string(head.tag) +
         (block == BlockOfWrite(head.tag, head.number) ? "" : ", torn");
}

}  // namespace

Blocks EmptyBlocks() { return Blocks(kBlocks, std::string(kBlockBytes, '\0')); }

size_t PlaceOfWrite(uint64_t number) { return (number - 1) % kBlocks; }

std::string BlockOfWrite(uint64_t tag, uint64_t number) {
  std::string body(kBlockBytes - sizeof(BlockHead), '\0');
  uint64_t state = Mixed(tag * 1000003 + number);
  for (size_t at = 0; at + sizeof(state) <= body.size(); at += sizeof(state)) {
    state = Mixed(state);
    std::memcpy(body.data() + at, &state, sizeof(state));
  }
  BlockHead head{.tag = tag, .number = number, .sum = 0};
  head.sum = SumOf(body);
  std::string block(sizeof(head), '\0');
  std::memcpy(block.data(), &head, sizeof(head));
  return block + body;
}

// ---- WriteHistory -------------------------------------------------------------------------------

std::shared_ptr<WriteHistory> WriteHistory::OfContent(uint64_t tag) {
  auto history = std::make_shared<WriteHistory>(tag);
  const MutexLock lock(history->mu_);
  history->knows_base_ = false;
  return history;
}

void WriteHistory::Continue(std::shared_ptr<const WriteHistory> base, uint64_t last) {
  const MutexLock lock(mu_);
  base_ = std::move(base);
  base_last_ = last;
  knows_base_ = true;
}

bool WriteHistory::knows_base() const {
  const MutexLock lock(mu_);
  return knows_base_;
}

uint64_t WriteHistory::Issue(uint64_t now) {
  const MutexLock lock(mu_);
  if (writes_.empty() || writes_.back().acknowledged_at) {
    writes_.push_back({.issued_at = now, .acknowledged_at = std::nullopt});
  }
  return base_last_ + writes_.size();
}

void WriteHistory::Acknowledge(uint64_t number, uint64_t now) {
  const MutexLock lock(mu_);
  writes_.at(number - base_last_ - 1).acknowledged_at = now;
}

uint64_t WriteHistory::issued() const {
  const MutexLock lock(mu_);
  return base_last_ + writes_.size();
}

uint64_t WriteHistory::acknowledged() const {
  const MutexLock lock(mu_);
  const bool waits = !writes_.empty() && !writes_.back().acknowledged_at;
  return base_last_ + writes_.size() - (waits ? 1 : 0);
}

uint64_t WriteHistory::TagOf(uint64_t number) const {
  std::shared_ptr<const WriteHistory> base;
  {
    const MutexLock lock(mu_);
    if (number > base_last_ || !base_) return tag_;
    base = base_;
  }
  return base->TagOf(number);
}

const WriteHistory::Write* WriteHistory::Find(uint64_t number) const {
  if (number <= base_last_ || number > base_last_ + writes_.size()) return nullptr;
  return &writes_[number - base_last_ - 1];
}

uint64_t WriteHistory::IssuedAt(uint64_t number) const {
  const MutexLock lock(mu_);
  const Write* const write = Find(number);
  return write == nullptr ? 0 : write->issued_at;
}

std::optional<uint64_t> WriteHistory::AcknowledgedAt(uint64_t number) const {
  const MutexLock lock(mu_);
  if (number <= base_last_) return 0;
  const Write* const write = Find(number);
  return write == nullptr ? std::nullopt : write->acknowledged_at;
}

// ---- what was read ------------------------------------------------------------------------------

Prefix PrefixIn(const WriteHistory& history, const Blocks& blocks) {
  Prefix found;
  if (blocks.size() != kBlocks) return {0, "it has " + std::to_string(blocks.size()) + " blocks"};
  for (const std::string& block : blocks) {
    if (block.size() != kBlockBytes) return {0, "a block has another size"};
    const BlockHead head = HeadOf(block);
    if (block == BlockOfWrite(head.tag, head.number))
      found.last = std::max(found.last, head.number);
  }
  for (size_t place = 0; place < kBlocks; ++place) {
    const uint64_t number = LastAt(place, found.last);
    const std::string expected =
        number == 0 ? std::string(kBlockBytes, '\0') : BlockOfWrite(history.TagOf(number), number);
    if (blocks[place] == expected) continue;
    found.problem += "block " + std::to_string(place) + " is " + Shown(blocks[place]) +
                     " and not " + Shown(expected) + "; ";
  }
  if (!found.problem.empty()) {
    found.problem = "it is no moment of what was written to volume " +
                    std::to_string(history.tag()) + ", whose last write there is " +
                    std::to_string(found.last) + ": " + found.problem;
  }
  return found;
}

Prefix PrefixBetween(const WriteHistory& history, const Blocks& blocks, uint64_t least,
                     uint64_t most) {
  Prefix found = PrefixIn(history, blocks);
  if (!found.problem.empty()) return found;
  if (found.last < least) {
    found.problem = "it ends with write " + std::to_string(found.last) + ", and write " +
                    std::to_string(least) + " was acknowledged before";
  }
  if (found.last > most) {
    found.problem = "it ends with write " + std::to_string(found.last) + ", and no more than " +
                    std::to_string(most) + " were issued by then";
  }
  return found;
}

Prefix CutContent::Learn(const Blocks& blocks) {
  Prefix found = PrefixBetween(*of_, blocks, least_, most_);
  if (!found.problem.empty()) return found;
  const MutexLock lock(mu_);
  if (learned_ && *learned_ != found.last) {
    found.problem = "it ends with write " + std::to_string(found.last) +
                    ", and another volume of the same cut ended with " + std::to_string(*learned_);
  } else {
    learned_ = found.last;
  }
  return found;
}

std::optional<uint64_t> CutContent::learned() const {
  const MutexLock lock(mu_);
  return learned_;
}

std::string WhyNotOneMoment(const std::vector<std::shared_ptr<const CutContent>>& members) {
  for (const auto& has : members) {
    const std::optional<uint64_t> last = has->learned();
    if (!last) continue;
    const uint64_t begun = has->of()->IssuedAt(*last);
    for (const auto& lacks : members) {
      const std::optional<uint64_t> before = lacks->learned();
      if (!before) continue;
      const std::optional<uint64_t> missed = lacks->of()->AcknowledgedAt(*before + 1);
      if (!missed || *missed >= begun) continue;
      return "volume " + std::to_string(has->of()->tag()) + " has write " + std::to_string(*last) +
             ", which began after write " + std::to_string(*before + 1) + " of volume " +
             std::to_string(lacks->of()->tag()) + " was acknowledged, and that is missing";
    }
  }
  return "";
}

}  // namespace volumed::random_clients
