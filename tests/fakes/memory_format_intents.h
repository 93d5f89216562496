// MemoryFormatIntents: FormatIntents in memory, as durable as the test wants it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mounter/format_intents.h"

namespace volumed {

// Threads: one. Blocks: never.
class MemoryFormatIntents final : public FormatIntents {
 public:
  Result<std::optional<FormatIntent>> Find(const std::string& key) override {
    const auto found = intents_.find(key);
    if (found == intents_.end()) return std::optional<FormatIntent>();
    return std::optional<FormatIntent>(found->second);
  }
  Status Reserve(const std::string&, const std::string&, const CallOptions&) override {
    return OkStatus();
  }
  Status Begin(const std::string& key, const FormatIntent& intent) override {
    return Put("begin", key, intent, false);
  }
  Status Finish(const std::string& key, const FormatIntent& intent) override {
    return Put("finish", key, intent, true);
  }
  Status Withdraw(const std::string& key) override {
    calls_.push_back("withdraw " + key);
    intents_.erase(key);
    return OkStatus();
  }

  // The next write of this kind ("begin", "finish") fails, and writes nothing.
  void FailNext(const std::string& kind) { fail_next_ = kind; }
  const std::vector<std::string>& calls() const { return calls_; }

 private:
  Status Put(const std::string& kind, const std::string& key, FormatIntent intent, bool finished) {
    calls_.push_back(kind + " " + key);
    if (fail_next_ == kind) {
      fail_next_.clear();
      return Error::NotApplied(Code::kUnavailable, "the record store is full");
    }
    intent.finished = finished;
    intents_.insert_or_assign(key, intent);
    return OkStatus();
  }

  std::map<std::string, FormatIntent> intents_;
  std::vector<std::string> calls_;
  std::string fail_next_;
};

}  // namespace volumed
