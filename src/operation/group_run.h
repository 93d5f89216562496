// GroupRun: what set-up and teardown of a group (group_operations.h) have in common: the intents of
// its volumes are written together, one batch makes their effects, and their outcomes are written
// together. Only the operations' own source files include this.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "operation/operation.h"
#include "operation/operation_parts.h"
#include "operation/volume_record_keeper.h"
#include "os/kernel_requests.h"

namespace volumed {

// An item of the batch, and the step that it is of its volume's operation.
struct GroupEffect {
  std::string step;
  AnyRequest request;
  bool changes_volume = true;
  std::string about = {};  // what of the volume it is for, for people
};

// One volume of a group, from its plan to its outcome.
struct GroupVolume {
  size_t number = 0;  // of its request
  VolumeRecordKeeper::Call call;
  std::vector<GroupEffect> effects;  // each needs those before it
  uint64_t attempt = 0;
  size_t first_item = 0;
  PublishedContent published = {};
  GivenStorage storage = {};
  std::optional<OperationFailure> failure = {};
};

// Threads: one at a time per volume. Blocks: Run alone, until its deadline and the store.
class GroupRun {
 public:
  struct Names {
    const char* operation;
    const char* step;  // the one batch, for people
  };
  GroupRun(const OperationParts& parts, Names names, SafePath directory,
           OperationProgress& progress)
      : parts_(parts),
        operation_(names.operation),
        step_(names.step),
        directory_(std::move(directory)),
        progress_(progress) {}

  // Comes before all volumes, each of which needs it.
  void AddCommon(GroupEffect effect) { common_.push_back(std::move(effect)); }
  void Add(GroupVolume volume) { volumes_.push_back(std::move(volume)); }

  // Is told of each effect that was made, by its volume's place in `volumes` and its own number;
  // what it answers is the volume's failure.
  using Done = std::function<std::optional<OperationFailure>(size_t, size_t, const AnyAnswer&)>;

  // Sets the failure of each volume that has not succeeded.
  void Run(Duration timeout, const Done& done);

  // What is on record of it if it succeeds.
  void SetPublished(size_t volume, PublishedContent published) {
    volumes_[volume].published = std::move(published);
  }

  // What its pod has by then.
  void SetStorage(size_t volume, GivenStorage storage) {
    volumes_[volume].storage = std::move(storage);
  }

  const std::vector<GroupVolume>& volumes() const { return volumes_; }
  // Nothing was tried, because a worker is still at one of them: each is to be tried by itself.
  bool was_refused() const { return was_refused_; }

 private:
  void BeginCalls();
  Result<BatchAnswer> CallKernel(Duration timeout);
  std::optional<OperationFailure> OutcomeOf(size_t index, const Result<BatchAnswer>& answer,
                                            const Done& done) const;
  void EndCalls();

  const OperationParts& parts_;
  const char* const operation_;
  const char* const step_;
  const SafePath directory_;
  OperationProgress& progress_;
  std::vector<GroupEffect> common_;
  std::vector<GroupVolume> volumes_;
  bool was_refused_ = false;
};

}  // namespace volumed
