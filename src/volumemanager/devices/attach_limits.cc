#include "volumemanager/devices/attach_limits.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/strings.h"
#include "pluginmgr/volume_plugin_with_attach_limits.h"

namespace volumed {
namespace {

// nullopt: there is no limit.
Result<std::optional<int64_t>> LimitOf(const VolumePluginMgr& plugins, const std::string& plugin,
                                       const std::string& limit_key) {
  ASSIGN_OR_RETURN(VolumePlugin * found, plugins.FindPluginByName(plugin));
  const VolumePluginWithAttachLimits* limited = found->AsWithAttachLimits();
  if (limited == nullptr) return std::optional<int64_t>();
  const auto limits = limited->GetVolumeLimits();
  if (!limits.ok()) return limits.error().With("attach limits of " + plugin);
  const auto limit = limits->find(limit_key);
  return limit == limits->end() ? std::optional<int64_t>() : std::optional(limit->second);
}

}  // namespace

std::optional<AttachLimits::Refusal> AttachLimits::Admit(const UniqueVolumeName& device,
                                                         const WantedVolume& wanted) {
  const ActualDevice* known = actual_.devices().Find(device);
  // A device that may be attached keeps its slot, even if the limit has been lowered since.
  if (wanted.limit_key.empty() || (known != nullptr && MayBePresent(*known))) {
    Forget(device);
    return std::nullopt;
  }
  const auto found = waiting_.find(device);
  const bool is_new = found == waiting_.end();
  const Waiter waiter =
      is_new ? Waiter{wanted.plugin_name, wanted.limit_key, clock_.WallUnixMillis(), ++last_turn_}
             : found->second;
  std::optional<Error> refused = Check(device, waiter);
  if (!refused) {
    Forget(device);
    return std::nullopt;
  }
  if (is_new) {
    turns_[waiter.limit_key].emplace(waiter.turn, device);
    waiting_.emplace(device, waiter);
  }
  return Refusal{*std::move(refused), waiter.since_unix_ms, is_new};
}

bool AttachLimits::Forget(const UniqueVolumeName& device) {
  const auto found = waiting_.find(device);
  if (found == waiting_.end()) return false;
  const auto turns = turns_.find(found->second.limit_key);
  turns->second.erase(found->second.turn);
  if (turns->second.empty()) turns_.erase(turns);
  waiting_.erase(found);
  return true;
}

std::vector<UniqueVolumeName> AttachLimits::NextInTurn() const {
  std::vector<UniqueVolumeName> next;
  for (const auto& [limit_key, turns] : turns_) {
    const Waiter& first = waiting_.at(turns.begin()->second);
    const auto limit = LimitOf(plugins_, first.plugin_name, limit_key);
    auto left = static_cast<int64_t>(limit.ok() ? turns.size() : 1);
    if (limit.ok() && *limit) {
      const auto taken = static_cast<int64_t>(SlotsOf(limit_key, UniqueVolumeName()).size());
      left = std::max<int64_t>(**limit - taken, 1);
    }
    for (const auto& [turn, device] : turns) {
      if (left-- == 0) break;
      next.push_back(device);
    }
  }
  return next;
}

std::optional<AttachLimits::Refusal> AttachLimits::Find(const UniqueVolumeName& device) const {
  const auto found = waiting_.find(device);
  if (found == waiting_.end()) return std::nullopt;
  std::optional<Error> refused = Check(device, found->second);
  if (!refused) return std::nullopt;
  return Refusal{*std::move(refused), found->second.since_unix_ms, false};
}

std::optional<Error> AttachLimits::Check(const UniqueVolumeName& device,
                                         const Waiter& waiter) const {
  const Result<std::optional<int64_t>> limit =
      LimitOf(plugins_, waiter.plugin_name, waiter.limit_key);
  if (!limit.ok()) return limit.error();
  if (!*limit) return std::nullopt;
  const std::vector<UniqueVolumeName> slots = SlotsOf(waiter.limit_key, device);
  const int64_t ahead = AheadOf(waiter);
  if (static_cast<int64_t>(slots.size()) + ahead < **limit) return std::nullopt;
  std::string text = "the node takes at most " + std::to_string(**limit) + " volumes of limit \"" +
                     waiter.limit_key + "\" at once";
  for (size_t i = 0; i < slots.size(); ++i) {
    text +=
        (i == 0 ? ": slot " : ", slot ") + std::to_string(i + 1) + " has " + UsersText(slots[i]);
  }
  if (ahead > 0) text += "; " + std::to_string(ahead) + " wait longer";
  return Error::NotApplied(Code::kResourceExhausted, std::move(text));
}

int64_t AttachLimits::AheadOf(const Waiter& waiter) const {
  const auto turns = turns_.find(waiter.limit_key);
  if (turns == turns_.end()) return 0;
  return std::distance(turns->second.begin(), turns->second.lower_bound(waiter.turn));
}

std::vector<UniqueVolumeName> AttachLimits::SlotsOf(const std::string& limit_key,
                                                    const UniqueVolumeName& device) const {
  std::vector<UniqueVolumeName> slots;
  for (const UniqueVolumeName& name : actual_.devices().OfLimit(limit_key)) {
    if (name != device && MayBePresent(*actual_.devices().Find(name))) slots.push_back(name);
  }
  return slots;
}

// "volume data-1 (pod default/a)".
std::string AttachLimits::UsersText(const UniqueVolumeName& device) const {
  std::set<PodUid> pods = desired_.UsersOf(device);
  for (const PodVolumeKey& user : actual_.UsersOf(device)) pods.insert(user.pod);
  std::vector<std::string> names;
  for (const PodUid& uid : pods) {
    const ActualPod* pod = actual_.FindPod(uid);
    names.push_back(pod == nullptr ? uid.str() : pod->identity.DisplayName());
  }
  const std::string users = names.empty()
                                ? "no pod; it is being detached"
                                : (names.size() == 1 ? "pod " : "pods ") + Join(names, ", ");
  return "volume " + actual_.devices().Find(device)->spec.str() + " (" + users + ")";
}

}  // namespace volumed
