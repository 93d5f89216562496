#include "volumemanager/records_loader.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "volumemanager/recorded_secrets.h"
#include "volumemanager/unknown_mount_texts.h"

namespace volumed {

// All of this may be as large as what the node has, so the control thread neither makes, copies nor
// destroys it.
struct RecordsLoader::Loading {
  explicit Loading(const Clock& clock) : loaded{{}, {}, ActualStateOfWorld(clock)} {}

  std::optional<Error> error;
  LoadedState loaded;
  SentSecretsByDriver secrets;
  std::atomic<int> under_way{2};  // decoding the pods' objects, and looking at the node
  size_t restored = 0;            // how many volumes of the result the operations know
};

RecordsLoader::RecordsLoader(Parts parts, BootId boot_id, FindOptions options, Hooks hooks)
    : parts_(parts),
      boot_id_(std::move(boot_id)),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      work_(parts.scheduler),
      backoff_(parts.scheduler.clock()) {}

void RecordsLoader::Load() {
  // Two tasks run beside each other, and the last to end goes on here. It uses only the copies made
  // here, and nothing of *this.
  const auto reconstruct = [this, options = options_, boot_id = boot_id_, owner = alive_.watch(),
                            parts = parts_](const std::shared_ptr<Loading>& loading) {
    LoadedState& loaded = loading->loaded;
    if (!loading->error) {
      DropOnlyPodsOfNobody(loaded.found);
      loading->secrets = SecretsOnRecord(loaded.found);
      loaded.result =
          Reconstruct(loaded.found, boot_id, options.all_directories, parts.paths, loaded.actual);
      loaded.result.unknown_mount_texts =
          TextsOfUnknownMounts(loaded.found, parts.paths, loaded.result.unknown_mounts,
                               loaded.result.unknown_device_mounts);
    }
    parts.scheduler.Post([this, owner, loading] {
      if (owner.alive()) Loaded(loading);
    });
  };
  parts_.scheduler.RunBlocking([options = options_, reconstruct, parts = parts_,
                                other_kinds = hooks_.other_kinds] {
    auto loading = std::make_shared<Loading>(parts.scheduler.clock());
    Result<FoundAtStart> found = LoadRecordsAtStart(parts.store, other_kinds);
    if (!found.ok()) {
      loading->error = found.error();
      return reconstruct(loading);
    }
    loading->loaded.found = *std::move(found);
    const auto part_done = [reconstruct, loading] {
      if (--loading->under_way == 0) reconstruct(loading);
    };
    parts.scheduler.RunBlocking([loading, part_done] {
      DecodePodObjects(loading->loaded.found);
      part_done();
    });
    const Status on_node =
        LookAtNode({parts.kernel, parts.plugins, parts.scheduler.clock(), parts.paths, parts.log},
                   options, loading->loaded.found);
    if (!on_node.ok()) loading->error = on_node.error();
    part_done();
  });
}

void RecordsLoader::Loaded(const std::shared_ptr<Loading>& loading) {
  if (loading->error) return LoadAgain(*loading->error);
  parts_.readiness.SetLoadError(std::nullopt);
  if (hooks_.secrets_on_record) hooks_.secrets_on_record(std::move(loading->secrets));
  if (hooks_.restore_other) {
    for (const auto& [kind, rows] : loading->loaded.found.others) hooks_.restore_other(kind, rows);
  }
  const auto restore = [this, loading](TaskLimit& limit) { return RestoreSome(*loading, limit); };
  work_.Start({restore, [this, loading](TaskLimit&) {
                 LoadedState& loaded = loading->loaded;
                 hooks_.take_over(loaded);
                 parts_.scheduler.RunBlocking(
                     [found = std::make_shared<FoundAtStart>(std::move(loaded.found)),
                      result = std::make_shared<ReconstructResult>(std::move(loaded.result))] {});
                 return true;
               }});
}

// Nobody else hears of them. There are as many as the node has volumes of a CO, and nothing is
// decoded for one.
void RecordsLoader::RestoreTargets(const FoundAtStart& found) {
  std::vector<PodVolumeRecord> volumes;
  volumes.reserve(found.target_volumes.size());
  for (const PodVolumeRecord& record : found.target_volumes) {
    volumes.push_back(AfterRestart(record, boot_id_));
  }
  hooks_.restore_operations(volumes, found.target_devices);
}

bool RecordsLoader::RestoreSome(Loading& loading, TaskLimit& limit) {
  constexpr size_t kTogether = 64;
  const std::vector<PodVolumeRecord>& volumes = loading.loaded.result.volumes;
  if (!hooks_.restore_operations) return true;
  // The operations get the devices as they were recorded, since only that tells what a reboot has
  // taken from them.
  if (loading.restored == 0) {
    hooks_.restore_operations({}, loading.loaded.found.devices);
    const FoundAtStart& found = loading.loaded.found;
    if (!found.target_volumes.empty() || !found.target_devices.empty()) RestoreTargets(found);
  }
  while (loading.restored < volumes.size() && limit.TakeOne()) {
    const auto first = volumes.begin() + static_cast<ptrdiff_t>(loading.restored);
    const size_t count = std::min(kTogether, volumes.size() - loading.restored);
    hooks_.restore_operations({first, first + static_cast<ptrdiff_t>(count)}, {});
    loading.restored += count;
  }
  return loading.restored == volumes.size();
}

void RecordsLoader::LoadAgain(const Error& error) {
  parts_.readiness.SetLoadError(error);
  const Duration delay = backoff_.RecordFailure("records", "load", "");
  parts_.log.Error("what the last run left could not be read; trying again", {{"error", error}});
  parts_.scheduler.PostAfter(delay, alive_.Guarded([this] { Load(); }));
}

}  // namespace volumed
