#include "agent/snapshot_backend.h"

#include <optional>

namespace volumed {

Error NoSuchSnapshot(const SnapshotMaker& maker, const std::string& id) {
  std::string text = "there is no snapshot " + id;
  std::optional<SnapshotRecord> named = maker.FindByName(kByHand + id);
  if (!named) named = maker.FindByName(id);
  if (named) text += "; the one that has this name goes by its id, " + named->id;
  return Error::NotApplied(Code::kNotFound, std::move(text));
}

void DeleteSnapshotByHand(const SnapshotBackend& snapshots, const std::string& id,
                          const SnapshotEngine::Done& done) {
  const Status may = snapshots.objects.CheckNotHad(id);
  if (!may.ok()) return done(may);
  // To the maker one that is unknown is deleted already: CSI wants that of a call that is repeated.
  if (snapshots.maker.Find(id)) return snapshots.maker.Delete(id, done);
  snapshots.maker.Delete(id, [&maker = snapshots.maker, id, done](const Status& unknown) {
    done(unknown.ok() ? NoSuchSnapshot(maker, id) : unknown);
  });
}

}  // namespace volumed
