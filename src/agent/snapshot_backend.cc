#include "agent/snapshot_backend.h"

#include <optional>

#include "csidriver/csi_volume_wish.h"

namespace volumed {

Error NoSuchSnapshot(const SnapshotMaker& maker, const std::string& id) {
  std::string text = "there is no snapshot " + id;
  std::optional<SnapshotRecord> named = maker.FindByName(kByHand + id);
  if (!named) named = maker.FindByName(id);
  if (named) text += "; the one that has this name goes by its id, " + named->id;
  return Error::NotApplied(Code::kNotFound, std::move(text));
}

Error MayBeWanted(const std::string& what, const std::string& id) {
  const std::string asked = what == "volume" ? "`kubectl get pv -o yaml`"
                                             : "`kubectl get volumesnapshotcontents -o yaml`";
  return Error::NotApplied(
      Code::kFailedPrecondition,
      what + " " + id + " was made for an orchestrator, which alone knows whether it is wanted: " +
          "under Kubernetes " + asked + " must not have this id. Then --abandoned deletes it");
}

void DeleteSnapshotByHand(const SnapshotBackend& snapshots, const std::string& id, bool abandoned,
                          const SnapshotEngine::Done& done) {
  const Status may = snapshots.objects.CheckNotHad(id);
  if (!may.ok()) return done(may);
  const std::optional<SnapshotRecord> there = snapshots.maker.Find(id);
  if (there && IsPoolNameOfCsi(there->name) && !abandoned) return done(MayBeWanted("snapshot", id));
  // To the maker one that is unknown is deleted already: CSI wants that of a call that is repeated.
  if (there) return snapshots.maker.Delete(id, done);
  snapshots.maker.Delete(id, [&maker = snapshots.maker, id, done](const Status& unknown) {
    done(unknown.ok() ? NoSuchSnapshot(maker, id) : unknown);
  });
}

}  // namespace volumed
