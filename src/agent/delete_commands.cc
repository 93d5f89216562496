#include "agent/delete_commands.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "agent/command_admission.h"
#include "agent/control_backend.h"
#include "agent/object_use.h"
#include "agent/pod_lookup.h"
#include "agent/snapshot_backend.h"
#include "base/strings.h"
#include "kube/storage_enums.h"
#include "pool/pool_plugin.h"
#include "volume/claim_binding.h"
#include "volume/csi_translation.h"
#include "volume/driver_domain.h"
#include "volume/storage_name.h"
#include "volumemanager/claims/provisioning.h"

namespace volumed {
namespace {

// How many objects one task takes: each is looked up, and what goes with it is found out, while
// others need the control thread too.
constexpr size_t kMostInATask = 32;

constexpr const char* kAfterRecovery =
    "; the records are in recovery: if the agent is started anew before `volumectl "
    "records accept`, it comes back, and is to be deleted again";

std::string GiveUpText(const std::string& volume) {
  return "`volumectl delete pv " + volume + " --force`";
}

// What stays where once the reclaim of the volume is given up.
std::string LeftText(const PendingReclaim& reclaim, const CsiDebts* debts) {
  std::string text = "CSI driver " + reclaim.driver + " is not asked to delete volume " +
                     reclaim.handle +
                     ", which stays there with its data: look for it there, and "
                     "delete it by hand";
  if (reclaim.may_be_done) text += "; a try before may have deleted it all the same";
  std::vector<std::string> owed;
  if (debts != nullptr) {
    const auto calls = debts->Of({reclaim.driver, reclaim.handle});
    if (!calls.ok()) return text + "; what it is owed is not known: " + calls.error().message();
    for (const CsiDebt& debt : *calls) owed.emplace_back(OwedCallName(debt.what));
  }
  if (!reclaim.device.empty()) {
    text += "; on this node its device is still " + reclaim.device +
            ": it is taken away once the driver is back";
  }
  if (!owed.empty()) text += "; owed to the driver, once it is back: " + Join(owed, ", ");
  return text;
}

// Of a claim without a volume while records are missing, of which `recovery` tells: they may have
// told of one.
std::string LostVolumeText(const ObjectCatalog& catalog, const VolumeManager& manager,
                           const RecoveryGate& recovery, const ObjectKey& key) {
  const bool is_active = recovery.recovery().active;
  if (!is_active && recovery.MountsText().empty()) return "";
  if (key.kind != ObjectKind::kPersistentVolumeClaim || manager.storage().IsBound(key)) return "";
  const auto claim = catalog.FindPersistentVolumeClaim(key.name_space, key.name);
  const auto view = manager.storage().FindPersistentVolumeClaim({key.name_space, key.name});
  if (claim == nullptr || !view || !claim->spec.volume_name.empty()) return "";
  const auto storage_class = catalog.FindStorageClass(view->storage_class);
  if (storage_class == nullptr || storage_class->provisioner == kNoProvisioner) return "";
  return (is_active ? "the records are in recovery: "
                    : "mounts that were here at the start are on no record: ") +
         storage_class->provisioner + " may have made volume " +
         ProvisionedVolumeName(claim->metadata.uid) +
         " for it before, which nobody deletes then: look for it there";
}

// Of a PersistentVolume that no claim has, so that nothing reclaims it: what of it stays, and how
// that ends. "" for any other object, and for one that nobody here would ever reclaim.
std::string DataLeftBehind(const ControlBackend& backend, const ObjectKey& key) {
  if (key.kind != ObjectKind::kPersistentVolume || backend.manager.storage().IsBound(key)) {
    return "";
  }
  const PersistentVolumePtr volume = backend.catalog.FindPersistentVolume(key.name);
  if (volume == nullptr) return "";
  const auto* csi = std::get_if<CsiPersistentVolumeSource>(&volume->spec.source);
  const bool is_of_pool = csi != nullptr && backend.snapshots != nullptr &&
                          csi->driver == backend.snapshots->pools.driver;
  const ReclaimPolicy policy = volume->spec.reclaim_policy;
  const bool is_retained = ReclaimActionOf(policy) == ReclaimAction::kNone;
  if (is_retained && !is_of_pool) return "";
  const auto place = StorageNameOf(AsUsed(VolumeSpec::FromPersistentVolume(*volume, false)));
  std::string text = "its data" + (place ? " in " + place->ToString() : "") + " stays: ";
  text += is_retained ? "its reclaim policy is " + std::string(EnumText(policy))
                      : "no claim has had it, and its reclaim policy " +
                            std::string(EnumText(policy)) + " is for one that a claim has left";
  if (is_of_pool) {
    text += "; " + HowDataIsDeleted(backend.snapshots->pools.volumes, csi->volume_handle);
  }
  return text;
}

bool IsHeld(const VolumeManager& manager, const ObjectKey& key) {
  const std::optional<StorageStatus> status = manager.storage().StatusOf(key);
  return status && !status->held_by.empty();
}

// What is to be added to the answer for a PersistentVolume that goes no further.
std::string WhyItWaits(const std::optional<PendingReclaim>& reclaim, const std::string& volume,
                       bool force) {
  const bool may_give_up = reclaim && !reclaim->problem.empty();
  if (may_give_up) {
    return "; it waits for CSI driver " + reclaim->driver + ": " + reclaim->problem + "; " +
           GiveUpText(volume) + " gives that up: its object goes, and its storage stays there";
  }
  return force ? "; --force changes nothing here: it gives up what a driver that is away or fails "
                 "is to delete, and nothing else"
               : "";
}

// That the command waits for a driver as without `--force`, which is no way around it; "" if no
// volume of the pod has a driver that is away.
std::string WhatForceLeaves(const ControlBackend& backend, const PodView& pod) {
  if (!backend.why_driver_away) return "";
  for (const VolumeView& volume : pod.volumes) {
    const std::string domain =
        backend.operations.FaultDomainOf(PodVolumeKey{volume.pod, volume.spec});
    if (!IsDriverDomain(domain)) continue;
    const std::string why = backend.why_driver_away(domain.substr(kDriverDomainPrefix.size()));
    if (why.empty()) continue;
    return "--force changes nothing for volume " + volume.spec.str() + ", which waits for its " +
           "driver: " + why + "; it goes once that is back, or by driver-absent-limit if it is set";
  }
  return "";
}

void AddWarning(const std::string& text, v1::DeleteResponse* response) {
  if (text.empty()) return;
  const std::string& before = response->warning();
  response->set_warning((before.empty() ? "" : before + "; ") + text);
}

// The answer to the command, made from that of the manager; the pod's object has gone before.
Status AnswerOf(const Status& status, bool had_object, v1::DeleteResponse* response) {
  if (!status.ok() && status.error().maybe_applied()) {
    // The pod leaves, so an error would be wrong; the message becomes a warning.
    AddWarning(status.error().message(), response);
    return OkStatus();
  }
  if (status.ok() || !had_object) return status;
  if (status.error().code() == Code::kNotFound) return OkStatus();  // it had gone before
  return status.error().AsMaybeApplied();
}

}  // namespace

void DeleteCommands::Delete(std::vector<Command> commands) {
  TakeSome(std::make_shared<std::vector<Command>>(std::move(commands)), 0);
}

void DeleteCommands::TakeSome(const std::shared_ptr<std::vector<Command>>& commands, size_t from) {
  const size_t end = std::min(from + kMostInATask, commands->size());
  for (size_t i = from; i < end; ++i) Take((*commands)[i]);
  if (end < commands->size()) {
    backend_.scheduler.Post([this, commands, end] { TakeSome(commands, end); });
  } else {
    StartPods();
  }
}

void DeleteCommands::Take(Command& command) {
  const v1::ObjectRef& ref = command.request.object();
  const std::optional<ObjectKind> kind = ParseObjectKind(ref.kind());
  if (!kind) {
    return command.done(
        Error::NotApplied(Code::kInvalidArgument, "unknown kind '" + ref.kind() + "'"));
  }
  *command.response->mutable_object() = ref;
  if (*kind == ObjectKind::kPod) return TakePod(command);
  ObjectKey key{*kind, ref.namespace_().empty() ? "default" : ref.namespace_(), ref.name()};
  if (IsClusterScoped(*kind)) key.name_space.clear();
  TakeObject(command, key);
}

void DeleteCommands::TakePod(Command& command) {
  const v1::ObjectRef& ref = command.request.object();
  const bool force = command.request.force();
  const Result<PodUid> pod =
      FindPodOrSuccessor(backend_.manager, backend_.catalog, ref, backend_.node);
  if (!pod.ok()) {
    // A pod that is not known yet may exist: the caller must not take the answer for its end.
    const bool too_early = pod.error().code() == Code::kNotFound && !backend_.manager.Ready();
    return command.done(too_early ? Error::NotApplied(Code::kUnavailable,
                                                      pod.error().message() + " is known yet: " +
                                                          backend_.manager.NotReadyReason())
                                  : pod.error());
  }
  command.response->mutable_object()->set_uid(pod->str());
  backend_.log.Info("a pod is to be deleted by command", {{"pod", *pod}, {"force", force}});
  if (const std::optional<PodView> view = backend_.manager.pods().Find(*pod)) {
    std::string warning =
        WarningOfPodDelete(backend_.catalog, {ObjectKind::kPod, view->ns, view->name});
    if (!warning.empty() && backend_.recovery.recovery().active) warning += kAfterRecovery;
    command.response->set_warning(warning);
    if (force) AddWarning(WhatForceLeaves(backend_, *view), command.response);
  }
  const bool by_name = ref.uid().empty() && ref.name() != pod->str();
  waiting_.push_back({*pod, force, by_name, command.response, command.done, false});
}

void DeleteCommands::TakeUndoing(Command& command, const std::string& volume,
                                 const std::string& provisioner) {
  const std::string left = "what " + provisioner + " may have made as " + volume;
  if (!command.request.force()) {
    return command.done(Error::NotApplied(
        Code::kFailedPrecondition, "PersistentVolume " + volume +
                                       " is being undone, as its claim does not wait for it any "
                                       "more; `volumectl delete pv " +
                                       volume + " --force` gives that up, and " + left +
                                       " stays there"));
  }
  backend_.manager.object_commands().GiveUpUndo(volume, [this, response = command.response,
                                                         done = command.done, volume,
                                                         left](const Status& status) {
    if (status.ok()) {
      response->set_warning(left + " is left there, and nothing asks for it any more: look for " +
                            "it there, and delete it by hand");
      backend_.log.Warning("by command a volume is not undone",
                           {{"volume", volume}, {"told", response->warning()}});
    }
    done(status);
  });
}

bool DeleteCommands::TakeReclaim(const Command& command, const std::string& volume) {
  const std::optional<PendingReclaim> reclaim = backend_.manager.storage().ReclaimOf(volume);
  if (!command.request.force() || !reclaim || reclaim->problem.empty()) return false;
  const std::string left = LeftText(*reclaim, backend_.csi_debts);
  backend_.manager.object_commands().GiveUpReclaim(
      volume, "by command it is not reclaimed: " + left,
      [this, response = command.response, done = command.done, volume, left](const Status& status) {
        if (status.ok()) {
          response->set_warning(left);
          backend_.log.Warning("by command a volume is not reclaimed",
                               {{"volume", volume}, {"told", left}});
        }
        done(status);
      });
  return true;
}

void DeleteCommands::TakeObject(Command& command, const ObjectKey& key) {
  const bool is_volume = key.kind == ObjectKind::kPersistentVolume;
  if (is_volume && backend_.catalog.FindObject(key) == nullptr) {
    const std::string undoes = backend_.manager.storage().WhoUndoes(key.name);
    if (!undoes.empty()) return TakeUndoing(command, key.name, undoes);
  }
  if (is_volume && TakeReclaim(command, key.name)) return;
  const bool yes = command.request.yes();
  if (const Status may = CheckDelete(backend_.catalog, backend_.manager, key, yes); !may.ok()) {
    return command.done(may);
  }
  // This is asked before the object goes: a manifest that has it now still has it afterwards.
  const std::optional<ObjectOrigin> origin = OriginOfDeleted(backend_.catalog, key);
  std::string told = WarningOfUse(backend_.catalog, backend_.manager, key);
  const std::string fate = FateOfData(backend_.catalog, backend_.manager, key);
  if (!fate.empty()) told = fate;  // no object has both
  if (told.empty()) told = DataLeftBehind(backend_, key);
  if (backend_.recovery.recovery().active) {
    const auto data = DataThatEndsWith(backend_.catalog, backend_.manager, key);
    if (data && data->stays_because.empty()) {
      told += "; not before `volumectl records accept`, for the records are in recovery";
    }
  }
  if (fate.empty()) {
    told += LostVolumeText(backend_.catalog, backend_.manager, backend_.recovery, key);
  }
  backend_.manager.object_commands().Delete(
      key, [this, response = command.response, done = command.done, key, origin, told,
            force = command.request.force()](const Status& status) {
        if (status.ok()) {
          std::string more = WarningOfDelete(backend_.manager, key, origin);
          if (key.kind == ObjectKind::kPersistentVolume && IsHeld(backend_.manager, key)) {
            more += WhyItWaits(backend_.manager.storage().ReclaimOf(key.name), key.name, force);
          }
          response->set_warning(told + (told.empty() || more.empty() ? "" : "; ") + more);
          backend_.log.Info("deleted by command",
                            {{"object", ToString(key)}, {"told", response->warning()}});
        }
        done(status);
      });
}

void DeleteCommands::StartPods() {
  if (busy_ || waiting_.empty()) return;
  busy_ = true;
  backend_.scheduler.RunBlocking(
      [this, pods = std::exchange(waiting_, {})] { TakeOutOfDirectory(pods); });
}

// The object is removed first: a pod that is torn down must not come back with the next start.
void DeleteCommands::TakeOutOfDirectory(std::vector<PodDeletion> pods) {
  std::vector<ObjectDirectory::PodToDelete> to_delete;
  to_delete.reserve(pods.size());
  for (const PodDeletion& pod : pods) to_delete.push_back({pod.uid, pod.by_name});
  const std::vector<Result<std::string>> deleted = backend_.directory.DeletePods(to_delete);
  const auto gone = std::make_shared<std::vector<PodDeletion>>();
  for (size_t i = 0; i < pods.size(); ++i) {
    PodDeletion& pod = pods[i];
    if (!deleted[i].ok() && deleted[i].error().code() != Code::kNotFound) {
      pod.done(deleted[i].error());
      continue;
    }
    pod.had_object = deleted[i].ok();
    if (pod.had_object) AddWarning(*deleted[i], pod.response);
    gone->push_back(std::move(pod));
  }
  backend_.scheduler.Post([this, gone] {
    busy_ = false;
    StartPods();
    LetPodsGo(gone, 0);
  });
}

void DeleteCommands::LetPodsGo(const PodDeletions& pods, size_t from) {
  const size_t end = std::min(from + kMostInATask, pods->size());
  for (size_t i = from; i < end; ++i) {
    const PodDeletion& pod = (*pods)[i];
    backend_.manager.pod_commands().Delete(
        pod.uid, pod.force,
        [response = pod.response, done = pod.done, had_object = pod.had_object](
            const Status& status) { done(AnswerOf(status, had_object, response)); });
  }
  if (end == pods->size()) return;
  backend_.scheduler.Post([this, pods, end] { LetPodsGo(pods, end); });
}

}  // namespace volumed
