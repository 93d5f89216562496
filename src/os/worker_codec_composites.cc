#include "os/worker_codec_composites.h"

#include <utility>

#include "os/worker_codec_devices.h"

namespace volumed::worker_codec {
namespace {

VolumePayload ReadPayload(const worker::VolumePayload& from) {
  return {Read(from.files()), ReadList(from.nested_mount_points()), from.is_refresh()};
}

SkeletonPart ReadPart(const worker::SkeletonPart& from) {
  SkeletonPart part{from.name(), static_cast<SkeletonPart::Kind>(from.kind()), from.levels()};
  if (from.has_leaf_files()) part.leaf_files = ReadList(from.leaf_files());
  return part;
}

}  // namespace

void Write(const std::vector<PayloadFile>& from, PayloadFiles* to) {
  to->Reserve(static_cast<int>(from.size()));
  for (const PayloadFile& file : from) {
    worker::PayloadFile& f = *to->Add();
    f.set_path(file.path);
    f.set_content(file.content.Reveal());
    f.set_mode(file.mode);
    if (file.uid) f.set_uid(*file.uid);
  }
}

std::vector<PayloadFile> Read(const PayloadFiles& from) {
  std::vector<PayloadFile> files;
  files.reserve(static_cast<size_t>(from.size()));
  for (const worker::PayloadFile& f : from) {
    PayloadFile file{f.path(), Secret<std::string>(f.content()), f.mode(), std::nullopt};
    if (f.has_uid()) file.uid = f.uid();
    files.push_back(std::move(file));
  }
  return files;
}

// ---- requests -----------------------------------------------------------------------------------

void Fill(const EnsureVolume& from, worker::Request& to) {
  worker::EnsureVolume& m = *to.mutable_ensure_volume();
  Write(from.target, *m.mutable_target());
  m.set_mode(from.mode);
  m.set_parent_mode(from.parent_mode);
  if (from.tmpfs) WriteList(*from.tmpfs, m.mutable_tmpfs()->mutable_options());
  Write(from.marker, *m.mutable_marker());
  if (from.gid) m.set_gid(*from.gid);
  if (!from.payload) return;
  worker::VolumePayload& payload = *m.mutable_payload();
  Write(from.payload->files, payload.mutable_files());
  WriteList(from.payload->nested_mount_points, payload.mutable_nested_mount_points());
  payload.set_is_refresh(from.payload->is_refresh);
}

EnsureVolume Read(const worker::EnsureVolume& from) {
  EnsureVolume request{.target = Read(from.target()),
                       .mode = from.mode(),
                       .parent_mode = from.parent_mode(),
                       .marker = Read(from.marker())};
  if (from.has_tmpfs()) request.tmpfs = ReadList(from.tmpfs().options());
  if (from.has_gid()) request.gid = from.gid();
  if (from.has_payload()) request.payload = ReadPayload(from.payload());
  return request;
}

void Fill(const RemoveVolume& from, worker::Request& to) {
  Write(from.target, *to.mutable_remove_volume()->mutable_target());
  Write(from.marker, *to.mutable_remove_volume()->mutable_marker());
}

RemoveVolume Read(const worker::RemoveVolume& from) {
  return {Read(from.target()), Read(from.marker())};
}

void Fill(const PrepareSubPath& from, worker::Request& to) {
  worker::PrepareSubPath& m = *to.mutable_prepare_sub_path();
  Write(from.volume, *m.mutable_volume());
  m.set_sub_path(from.sub_path);
  Write(from.parent, *m.mutable_parent());
  Write(from.target, *m.mutable_target());
}

PrepareSubPath Read(const worker::PrepareSubPath& from) {
  return {Read(from.volume()), from.sub_path(), Read(from.parent()), Read(from.target())};
}

void Fill(const RemoveSubPaths& from, worker::Request& to) {
  worker::RemoveSubPaths& m = *to.mutable_remove_sub_paths();
  Write(from.of_volume, *m.mutable_of_volume());
  Write(from.all, *m.mutable_all());
  m.set_keep_directories(from.keep_directories);
}

RemoveSubPaths Read(const worker::RemoveSubPaths& from) {
  return {Read(from.of_volume()), Read(from.all()), from.keep_directories()};
}

void Fill(const RemoveSkeleton& from, worker::Request& to) {
  worker::RemoveSkeleton& m = *to.mutable_remove_skeleton();
  Write(from.path, *m.mutable_path());
  for (const SkeletonPart& part : from.parts) {
    worker::SkeletonPart& p = *m.add_parts();
    p.set_name(part.name);
    p.set_kind(static_cast<uint32_t>(part.kind));
    p.set_levels(part.levels);
    p.set_has_leaf_files(part.leaf_files.has_value());
    if (part.leaf_files) WriteList(*part.leaf_files, p.mutable_leaf_files());
  }
}

RemoveSkeleton Read(const worker::RemoveSkeleton& from) {
  RemoveSkeleton request{Read(from.path()), {}};
  request.parts.reserve(static_cast<size_t>(from.parts_size()));
  for (const worker::SkeletonPart& part : from.parts()) request.parts.push_back(ReadPart(part));
  return request;
}

void Fill(const Batch& from, worker::Request& to) {
  worker::Batch& m = *to.mutable_batch();
  Write(from.path, *m.mutable_path());
  m.mutable_items()->Reserve(static_cast<int>(from.items.size()));
  for (const BatchItem& item : from.items) {
    worker::BatchItem& i = *m.add_items();
    WriteRequest(item.request, *i.mutable_request());
    i.mutable_needs()->Add(item.needs.begin(), item.needs.end());
  }
}

Result<Batch> Read(const worker::Batch& from) {
  Batch request{Read(from.path()), {}};
  request.items.reserve(static_cast<size_t>(from.items_size()));
  for (const worker::BatchItem& item : from.items()) {
    ASSIGN_OR_RETURN(AnyRequest one, ReadRequest(item.request()));
    request.items.push_back({std::move(one), {item.needs().begin(), item.needs().end()}});
  }
  return request;
}

// ---- answers ------------------------------------------------------------------------------------

void Fill(const EnsuredVolume& from, worker::Answer& to) {
  worker::EnsuredVolume& m = *to.mutable_ensured_volume();
  m.set_changed(from.changed);
  if (from.owned_made_ns) m.set_owned_made_ns(*from.owned_made_ns);
  if (from.owned_filled_ns) m.set_owned_filled_ns(*from.owned_filled_ns);
}

EnsuredVolume Read(const worker::EnsuredVolume& from) {
  EnsuredVolume made{from.changed()};
  if (from.has_owned_made_ns()) made.owned_made_ns = from.owned_made_ns();
  if (from.has_owned_filled_ns()) made.owned_filled_ns = from.owned_filled_ns();
  return made;
}

void Fill(const BatchAnswer& from, worker::Answer& to) {
  worker::BatchAnswer& m = *to.mutable_batch_answer();
  for (const BatchItemAnswer& item : from.items) WriteAnswer(item.result, *m.add_items());
}

BatchAnswer Read(const worker::BatchAnswer& from) {
  BatchAnswer answer;
  answer.items.reserve(static_cast<size_t>(from.items_size()));
  for (const worker::Answer& item : from.items()) answer.items.push_back({ReadAnswer(item)});
  return answer;
}

}  // namespace volumed::worker_codec
