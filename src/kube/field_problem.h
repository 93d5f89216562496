// What field readers need besides the JSON: a place to collect problems, and the names of enum
// values.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/decode.h"
#include "kube/enum_names.h"
#include "kube/objects.h"
#include "kube/value_rules.h"

namespace volumed {

// Collects the problems of one document. Threads: one. Blocks: no.
//
// The reasons that are added are shown to people and logged, so they must not hold a value of a
// Secret.
class ProblemSink {
 public:
  // `file` and `document` are put into every problem; see DecodeProblem for their meaning.
  ProblemSink(std::string file, int document, DecodeRules rules = DecodeRules::kAtTheDoor)
      : file_(std::move(file)), document_(document), rules_(rules) {}

  // Which rules the document has to keep; FieldReader asks for them.
  DecodeRules rules() const { return rules_; }

  // Sets the object's name ("Pod default/web") in the problems that were added and in those that
  // follow.
  void set_object(const std::string& object);
  // `field_path` is the whole path from the document, "" for the document itself. Beyond
  // kMaxProblemsPerDocument problems are only counted.
  void Add(std::string field_path, std::string reason);
  // True if no problem was added since the last Take().
  bool empty() const { return problems_.empty(); }
  // Returns the problems in the order in which they were added, and then one with the number of
  // those that were only counted. After that the sink is empty.
  std::vector<DecodeProblem> Take();

 private:
  std::string file_;
  int document_;
  DecodeRules rules_;
  std::string object_;
  size_t dropped_ = 0;  // problems beyond kMaxProblemsPerDocument
  std::vector<DecodeProblem> problems_;
};

// kUnset has no name: a manifest says it by leaving the field out.
template <>
struct EnumNames<HostPathType> {
  static constexpr std::array<std::pair<HostPathType, std::string_view>, 7> kValues = {{
      {HostPathType::kDirectoryOrCreate, "DirectoryOrCreate"},
      {HostPathType::kDirectory, "Directory"},
      {HostPathType::kFileOrCreate, "FileOrCreate"},
      {HostPathType::kFile, "File"},
      {HostPathType::kSocket, "Socket"},
      {HostPathType::kCharDevice, "CharDevice"},
      {HostPathType::kBlockDevice, "BlockDevice"},
  }};
};

template <>
struct EnumNames<FsGroupChangePolicy> {
  static constexpr std::array<std::pair<FsGroupChangePolicy, std::string_view>, 2> kValues = {{
      {FsGroupChangePolicy::kAlways, "Always"},
      {FsGroupChangePolicy::kOnRootMismatch, "OnRootMismatch"},
  }};
};

template <>
struct EnumNames<SeLinuxChangePolicy> {
  static constexpr std::array<std::pair<SeLinuxChangePolicy, std::string_view>, 2> kValues = {{
      {SeLinuxChangePolicy::kMountOption, "MountOption"},
      {SeLinuxChangePolicy::kRecursive, "Recursive"},
  }};
};

template <>
struct EnumNames<MountPropagation> {
  static constexpr std::array<std::pair<MountPropagation, std::string_view>, 3> kValues = {{
      {MountPropagation::kNone, "None"},
      {MountPropagation::kHostToContainer, "HostToContainer"},
      {MountPropagation::kBidirectional, "Bidirectional"},
  }};
};

template <>
struct EnumNames<RecursiveReadOnly> {
  static constexpr std::array<std::pair<RecursiveReadOnly, std::string_view>, 3> kValues = {{
      {RecursiveReadOnly::kDisabled, "Disabled"},
      {RecursiveReadOnly::kIfPossible, "IfPossible"},
      {RecursiveReadOnly::kEnabled, "Enabled"},
  }};
};

template <>
struct EnumNames<RestartPolicy> {
  static constexpr std::array<std::pair<RestartPolicy, std::string_view>, 3> kValues = {{
      {RestartPolicy::kAlways, "Always"},
      {RestartPolicy::kOnFailure, "OnFailure"},
      {RestartPolicy::kNever, "Never"},
  }};
};

template <>
struct EnumNames<PodPhase> {
  static constexpr std::array<std::pair<PodPhase, std::string_view>, 5> kValues = {{
      {PodPhase::kPending, "Pending"},
      {PodPhase::kRunning, "Running"},
      {PodPhase::kSucceeded, "Succeeded"},
      {PodPhase::kFailed, "Failed"},
      {PodPhase::kUnknown, "Unknown"},
  }};
};

}  // namespace volumed
