#include "agent/mount_facts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/printable_text.h"
#include "os/mount_index.h"

namespace volumed {
namespace {

// The limit for one volume: a hostPath may have the whole node below it.
constexpr int kMaxMountsPerVolume = 32;

void Encode(const MountEntry& entry, v1::MountFact* out) {
  out->set_mount_point(AnswerText(entry.mount_point));
  out->set_fs_type(AnswerText(entry.fs_type));
  out->set_source(AnswerText(entry.source));
  out->set_device(std::to_string(entry.device_major) + ":" + std::to_string(entry.device_minor));
  out->set_root(AnswerText(entry.root));
  for (const std::string& option : entry.options) out->add_options(AnswerText(option));
  for (const std::string& option : entry.super_options) {
    out->add_super_options(AnswerText(option));
  }
  for (const std::string& field : entry.propagation) out->add_propagation(field);
}

bool Concerns(const MountEntry& entry, const MountQuestion& question) {
  if (question.path.empty()) return false;
  if (IsAtOrBelow(entry.mount_point, question.path)) return true;
  return std::find(question.sub_paths.begin(), question.sub_paths.end(), entry.mount_point) !=
         question.sub_paths.end();
}

// The mount to which a path belongs that has no mount of its own; if two are at one place, the
// later one.
const MountEntry* MountAround(const std::vector<MountEntry>& table, const std::string& path) {
  const MountEntry* around = nullptr;
  for (const MountEntry& entry : table) {
    if (!IsAtOrBelow(path, entry.mount_point)) continue;
    const bool nearer = around == nullptr || entry.mount_point.size() >= around->mount_point.size();
    if (nearer) around = &entry;
  }
  return around;
}

void Answer(const std::vector<MountEntry>& table, const MountQuestion& question,
            v1::DescribeResponse* response) {
  v1::VolumeMounts* out = response->add_mounts();
  out->set_volume(question.volume);
  bool is_mount_point = false;
  int64_t more = 0;
  for (const MountEntry& entry : table) {
    if (!Concerns(entry, question)) continue;
    is_mount_point = is_mount_point || entry.mount_point == question.path;
    if (out->mounts_size() < kMaxMountsPerVolume) {
      Encode(entry, out->add_mounts());
    } else {
      ++more;
    }
  }
  const MountEntry* around = is_mount_point ? nullptr : MountAround(table, question.path);
  if (around != nullptr) Encode(*around, out->mutable_lies_on());
  if (more > 0) {
    response->add_not_shown(std::to_string(more) + " more mounts of volume " + question.volume);
  }
}

// The part of the mount table that concerns a question.
Result<std::vector<MountEntry>> MountsOf(Kernel& kernel, const MountQuestion& question,
                                         const CallOptions& call) {
  std::vector<MountEntry> mounts;
  if (question.path.empty()) return mounts;  // the volume is not mounted yet
  std::vector<ListMounts> parts = {{.around = question.path}, {.below = question.path}};
  for (const std::string& sub_path : question.sub_paths) parts.push_back({.below = sub_path});
  std::set<uint64_t> seen;
  for (const ListMounts& part : parts) {
    ASSIGN_OR_RETURN(MountListing listing, kernel.Call(part, call));
    for (MountEntry& mount : listing.mounts) {
      if (seen.insert(mount.mount_id).second) mounts.push_back(std::move(mount));
    }
  }
  return mounts;
}

}  // namespace

void AnswerMountQuestions(const std::vector<MountEntry>& table, const MountQuestions& questions,
                          v1::DescribeResponse* response) {
  for (const MountQuestion& question : questions) Answer(table, question, response);
}

void AddMountFacts(Kernel& kernel, const LookLimit& limit, const MountQuestions& questions,
                   v1::DescribeResponse* response) {
  CallOptions call;
  call.deadline = limit.FromNow();
  for (const MountQuestion& question : questions) {
    const Result<std::vector<MountEntry>> mounts = MountsOf(kernel, question, call);
    if (!mounts.ok()) {
      response->set_mounts_error(mounts.error().ToString());
      return;
    }
    Answer(*mounts, question, response);
  }
}

}  // namespace volumed
