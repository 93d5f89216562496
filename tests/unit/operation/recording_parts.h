// What the tests of operation/ share: an observer and a logger that remember.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/manual_clock.h"
#include "operation/operation_observer.h"

namespace volumed {

class RecordingObserver final : public OperationObserver {
 public:
  struct Assigned {
    OperationKey key;
    VolumeState state;
    bool uncertain;
    friend bool operator==(const Assigned&, const Assigned&) = default;
  };

  void OperationFinished(const FinishedOperation& operation) override {
    finished.push_back(operation);
  }
  void StateAssigned(const OperationKey& key, VolumeState state, bool uncertain) override {
    assigned.push_back({key, state, uncertain});
  }

  std::vector<FinishedOperation> finished;
  std::vector<Assigned> assigned;
};

class LogLines {
 public:
  LogOptions Options() {
    LogOptions options;
    options.target = LogOptions::Target::kCallback;
    options.callback = [this](LogLevel, std::string_view line) { lines.emplace_back(line); };
    return options;
  }
  int Count(std::string_view text) const {
    int count = 0;
    for (const std::string& line : lines) count += line.find(text) != std::string::npos;
    return count;
  }

  std::vector<std::string> lines;
};

inline PodVolumeKey Key(const std::string& pod, const std::string& spec) {
  return {PodUid(pod), SpecName(spec)};
}

}  // namespace volumed
