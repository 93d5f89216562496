// CsiSecretMemory: the secrets that were sent to one driver. A driver keeps what it was given, and
// may tell of it in the answer to any later call, also to one that has no secrets, and also when
// the agent has started anew meanwhile.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "csi/rpc/csi_spellings.h"

namespace volumed {

// It is made of what this agent has sent since it started, and of what whoever knows of the time
// before adds to it (csi_earlier_secrets.h). It is bounded: the values that were sent last, each of
// 16 KiB at most, 64 KiB of them together. Threads: any. Blocks: never.
class CsiSecretMemory {
 public:
  CsiSecretMemory() = default;
  CsiSecretMemory(const CsiSecretMemory&) = delete;
  CsiSecretMemory& operator=(const CsiSecretMemory&) = delete;

  void Remember(const std::vector<std::string>& values) EXCLUDES(mu_);
  // As sent before all that it knows: they push out nothing.
  void RememberEarlier(const std::vector<std::string>& values) EXCLUDES(mu_);
  // Nothing that the driver says is to be shown, since a secret is not known that it was sent
  // before. What follows the word "until", for people, says when that ends; "" ends it.
  void Withhold(std::string until) EXCLUDES(mu_);
  // "" if the driver's words may be shown.
  std::string withheld_until() const EXCLUDES(mu_);
  // As CsiSpellings::Mark().
  [[nodiscard]] bool Mark(std::string_view text, bool is_cut, std::vector<bool>& places,
                          size_t& steps) const EXCLUDES(mu_);
  bool empty() const EXCLUDES(mu_);

 private:
  bool HasRoomFor(const std::string& value) const REQUIRES(mu_);
  void ForgetOldest() REQUIRES(mu_);

  mutable Mutex mu_;
  std::list<std::string> values_ GUARDED_BY(mu_);  // that was sent longest ago, first
  std::map<std::string_view, std::list<std::string>::iterator> places_ GUARDED_BY(mu_);
  size_t bytes_ GUARDED_BY(mu_) = 0;
  CsiSpellings spellings_ GUARDED_BY(mu_);
  std::string withheld_until_ GUARDED_BY(mu_);
};

}  // namespace volumed
