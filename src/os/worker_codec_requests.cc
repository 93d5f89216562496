#include <utility>

#include "os/worker_codec.h"
#include "os/worker_codec_composites.h"
#include "os/worker_codec_devices.h"
#include "worker.pb.h"

namespace volumed {
namespace {

namespace pb = worker;

using worker_codec::Fill;  // of the composite requests, and of those about devices
using worker_codec::Read;
using worker_codec::ReadList;
using worker_codec::Write;
using worker_codec::WriteList;

void Fill(const ListMounts& from, pb::Request& to) {
  pb::ListMounts& m = *to.mutable_list_mounts();
  m.set_below(from.below);
  m.set_around(from.around);
  if (!from.showing) return;
  m.mutable_showing()->set_device_major(from.showing->device_major);
  m.mutable_showing()->set_device_minor(from.showing->device_minor);
  m.mutable_showing()->set_root(from.showing->root);
}
void Fill(const ProbeFeatures&, pb::Request& to) { to.mutable_probe_features(); }
void Fill(const Mount& from, pb::Request& to) {
  pb::Mount& m = *to.mutable_mount();
  m.set_fs_type(from.fs_type);
  m.set_source(from.source);
  Write(from.target, *m.mutable_target());
  WriteList(from.options, m.mutable_options());
  if (from.expected_device)
    worker_codec::Write(*from.expected_device, *m.mutable_expected_device());
}
void Fill(const BindMount& from, pb::Request& to) {
  pb::BindMount& m = *to.mutable_bind_mount();
  Write(from.source, *m.mutable_source());
  Write(from.target, *m.mutable_target());
  m.set_read_only(from.read_only);
  m.set_recursive(from.recursive);
  m.set_recursive_read_only(from.recursive_read_only);
  if (from.expected_device)
    worker_codec::Write(*from.expected_device, *m.mutable_expected_device());
  if (from.expected.inode != 0) worker_codec::Write(from.expected, *m.mutable_expected());
}
void Fill(const Remount& from, pb::Request& to) {
  pb::Remount& m = *to.mutable_remount();
  Write(from.target, *m.mutable_target());
  WriteList(from.options, m.mutable_options());
}
void Fill(const Unmount& from, pb::Request& to) {
  pb::Unmount& m = *to.mutable_unmount();
  Write(from.target, *m.mutable_target());
  m.set_force(from.force);
}
void Fill(const MakeShared& from, pb::Request& to) {
  Write(from.target, *to.mutable_make_shared()->mutable_target());
}
void Fill(const Stat& from, pb::Request& to) {
  pb::Stat& m = *to.mutable_stat();
  Write(from.path, *m.mutable_path());
  m.set_follow(from.follow);
  m.set_only_mount_point(from.only_mount_point);
}
void Fill(const StatFs& from, pb::Request& to) {
  Write(from.path, *to.mutable_stat_fs()->mutable_path());
}
void Fill(const Usage& from, pb::Request& to) {
  Write(from.path, *to.mutable_usage()->mutable_path());
}
void Fill(const ChangeOwnership& from, pb::Request& to) {
  pb::ChangeOwnership& m = *to.mutable_change_ownership();
  Write(from.path, *m.mutable_path());
  m.set_gid(from.gid);
  m.set_read_only(from.read_only);
  m.set_on_root_mismatch(from.on_root_mismatch);
}
void Fill(const MakeDirectory& from, pb::Request& to) {
  pb::MakeDirectory& m = *to.mutable_make_directory();
  Write(from.path, *m.mutable_path());
  m.set_mode(from.mode);
  if (from.parent_mode) m.set_parent_mode(*from.parent_mode);
  m.set_exact_mode(from.exact_mode);
}
void Fill(const MakeFile& from, pb::Request& to) {
  Write(from.path, *to.mutable_make_file()->mutable_path());
  to.mutable_make_file()->set_mode(from.mode);
}
void Fill(const MakeSymlink& from, pb::Request& to) {
  Write(from.path, *to.mutable_make_symlink()->mutable_path());
  to.mutable_make_symlink()->set_target(from.leads_to);
}
void Fill(const ReadLink& from, pb::Request& to) {
  Write(from.path, *to.mutable_read_link()->mutable_path());
}
void Fill(const IdentifyDevice& from, pb::Request& to) {
  Write(from.path, *to.mutable_identify_device()->mutable_path());
  to.mutable_identify_device()->set_hold(from.hold);
}
void Fill(const DetachLoops& from, pb::Request& to) {
  Write(from.path, *to.mutable_detach_loops()->mutable_path());
}
void Fill(const RemoveDirectory& from, pb::Request& to) {
  Write(from.path, *to.mutable_remove_directory()->mutable_path());
}
void Fill(const RemoveFile& from, pb::Request& to) {
  Write(from.path, *to.mutable_remove_file()->mutable_path());
}
void Fill(const RemoveTree& from, pb::Request& to) {
  pb::RemoveTree& m = *to.mutable_remove_tree();
  Write(from.path, *m.mutable_path());
  m.set_content_alone(from.content_alone);
  if (from.expected.inode != 0) worker_codec::Write(from.expected, *m.mutable_expected());
}
void Fill(const ListDirectory& from, pb::Request& to) {
  Write(from.path, *to.mutable_list_directory()->mutable_path());
}
void Fill(const ReadFile& from, pb::Request& to) {
  Write(from.path, *to.mutable_read_file()->mutable_path());
  to.mutable_read_file()->set_max_bytes(from.max_bytes);
}
void Fill(const WriteAtomicPayload& from, pb::Request& to) {
  pb::WriteAtomicPayload& m = *to.mutable_write_atomic_payload();
  Write(from.target, *m.mutable_target());
  Write(from.files, m.mutable_files());
  if (from.gid) m.set_gid(*from.gid);
}
void Fill(const RunProgram& from, pb::Request& to) {
  pb::RunProgram& m = *to.mutable_run_program();
  WriteList(from.arguments, m.mutable_arguments());
  for (const auto& [number, text] : from.secret_arguments) {
    (*m.mutable_secret_arguments())[number] = text.Reveal();
  }
  m.set_output_bytes(from.output_bytes);
  m.set_own_scope(from.own_scope);
}
void Fill(const WriteFile& from, pb::Request& to) {
  pb::WriteFile& m = *to.mutable_write_file();
  Write(from.path, *m.mutable_path());
  m.set_content(from.content.Reveal());
  m.set_mode(from.mode);
}
void Fill(const WriteAttribute& from, pb::Request& to) {
  Write(from.path, *to.mutable_write_attribute()->mutable_path());
  to.mutable_write_attribute()->set_value(from.value);
}

ListMounts Read(const pb::ListMounts& from) {
  ListMounts request{from.below(), from.around()};
  if (from.has_showing()) {
    const pb::FilesystemPart& part = from.showing();
    request.showing = FilesystemPart{part.device_major(), part.device_minor(), part.root()};
  }
  return request;
}

Mount Read(const pb::Mount& from) {
  Mount request{from.fs_type(), from.source(), Read(from.target()), ReadList(from.options())};
  if (from.has_expected_device()) request.expected_device = Read(from.expected_device());
  return request;
}

BindMount Read(const pb::BindMount& from) {
  BindMount request{Read(from.source()), Read(from.target()), from.read_only(), from.recursive(),
                    from.recursive_read_only()};
  if (from.has_expected_device()) request.expected_device = Read(from.expected_device());
  request.expected = Read(from.expected());
  return request;
}

MakeDirectory Read(const pb::MakeDirectory& from) {
  MakeDirectory request{Read(from.path()), from.mode(), std::nullopt, from.exact_mode()};
  if (from.has_parent_mode()) request.parent_mode = from.parent_mode();
  return request;
}

WriteAtomicPayload Read(const pb::WriteAtomicPayload& from) {
  WriteAtomicPayload request;
  request.target = Read(from.target());
  request.files = Read(from.files());
  if (from.has_gid()) request.gid = from.gid();
  return request;
}

RunProgram Read(const pb::RunProgram& from) {
  RunProgram request{ReadList(from.arguments()), {}, from.output_bytes(), from.own_scope()};
  for (const auto& [number, text] : from.secret_arguments()) {
    request.secret_arguments.emplace(number, Secret<std::string>(text));
  }
  return request;
}

void WriteMessage(const AnyRequest& from, pb::Request& to) {
  std::visit([&to](const auto& r) { Fill(r, to); }, from);
}

Result<AnyRequest> ReadMessage(const pb::Request& m) {
  switch (m.request_case()) {
    case pb::Request::kListMounts:
      return AnyRequest(Read(m.list_mounts()));
    case pb::Request::kProbeFeatures:
      return AnyRequest(ProbeFeatures{});
    case pb::Request::kMount:
      return AnyRequest(Read(m.mount()));
    case pb::Request::kBindMount:
      return AnyRequest(Read(m.bind_mount()));
    case pb::Request::kRemount:
      return AnyRequest(Remount{Read(m.remount().target()), ReadList(m.remount().options())});
    case pb::Request::kUnmount:
      return AnyRequest(Unmount{Read(m.unmount().target()), m.unmount().force()});
    case pb::Request::kMakeShared:
      return AnyRequest(MakeShared{Read(m.make_shared().target())});
    case pb::Request::kStat:
      return AnyRequest(
          Stat{Read(m.stat().path()), m.stat().follow(), m.stat().only_mount_point()});
    case pb::Request::kStatFs:
      return AnyRequest(StatFs{Read(m.stat_fs().path())});
    case pb::Request::kUsage:
      return AnyRequest(Usage{Read(m.usage().path())});
    case pb::Request::kChangeOwnership:
      return AnyRequest(ChangeOwnership{
          Read(m.change_ownership().path()), m.change_ownership().gid(),
          m.change_ownership().read_only(), m.change_ownership().on_root_mismatch()});
    case pb::Request::kMakeDirectory:
      return AnyRequest(Read(m.make_directory()));
    case pb::Request::kMakeFile:
      return AnyRequest(MakeFile{Read(m.make_file().path()), m.make_file().mode()});
    case pb::Request::kRemoveDirectory:
      return AnyRequest(RemoveDirectory{Read(m.remove_directory().path())});
    case pb::Request::kRemoveFile:
      return AnyRequest(RemoveFile{Read(m.remove_file().path())});
    case pb::Request::kRemoveTree:
      return AnyRequest(RemoveTree{Read(m.remove_tree().path()), m.remove_tree().content_alone(),
                                   Read(m.remove_tree().expected())});
    case pb::Request::kListDirectory:
      return AnyRequest(ListDirectory{Read(m.list_directory().path())});
    case pb::Request::kReadFile:
      return AnyRequest(ReadFile{Read(m.read_file().path()), m.read_file().max_bytes()});
    case pb::Request::kWriteAtomicPayload:
      return AnyRequest(Read(m.write_atomic_payload()));
    case pb::Request::kProbeDevice:
      return AnyRequest(Read(m.probe_device()));
    case pb::Request::kFormatDevice:
      return AnyRequest(Read(m.format_device()));
    case pb::Request::kCheckFilesystem:
      return AnyRequest(Read(m.check_filesystem()));
    case pb::Request::kCheckDeviceUse:
      return AnyRequest(Read(m.check_device_use()));
    case pb::Request::kRunProgram:
      return AnyRequest(Read(m.run_program()));
    case pb::Request::kMakeSymlink:
      return AnyRequest(MakeSymlink{Read(m.make_symlink().path()), m.make_symlink().target()});
    case pb::Request::kReadLink:
      return AnyRequest(ReadLink{Read(m.read_link().path())});
    case pb::Request::kIdentifyDevice:
      return AnyRequest(
          IdentifyDevice{Read(m.identify_device().path()), m.identify_device().hold()});
    case pb::Request::kDetachLoops:
      return AnyRequest(DetachLoops{Read(m.detach_loops().path())});
    case pb::Request::kGrowFilesystem:
      return AnyRequest(Read(m.grow_filesystem()));
    case pb::Request::kFlushDevice:
      return AnyRequest(Read(m.flush_device()));
    case pb::Request::kWriteFile:
      return AnyRequest(WriteFile{Read(m.write_file().path()),
                                  Secret<std::string>(m.write_file().content()),
                                  m.write_file().mode()});
    case pb::Request::kWriteAttribute:
      return AnyRequest(
          WriteAttribute{Read(m.write_attribute().path()), m.write_attribute().value()});
    case pb::Request::kIdentifyStorage:
      return AnyRequest(Read(m.identify_storage()));
    case pb::Request::kMarkStorage:
      return AnyRequest(Read(m.mark_storage()));
    case pb::Request::kEnsureVolume:
      return AnyRequest(Read(m.ensure_volume()));
    case pb::Request::kRemoveVolume:
      return AnyRequest(Read(m.remove_volume()));
    case pb::Request::kPrepareSubPath:
      return AnyRequest(Read(m.prepare_sub_path()));
    case pb::Request::kRemoveSubPaths:
      return AnyRequest(Read(m.remove_sub_paths()));
    case pb::Request::kRemoveSkeleton:
      return AnyRequest(Read(m.remove_skeleton()));
    case pb::Request::kBatch: {
      ASSIGN_OR_RETURN(Batch batch, Read(m.batch()));
      return AnyRequest(std::move(batch));
    }
    case pb::Request::REQUEST_NOT_SET:
      break;
  }
  return Error::NotApplied(Code::kDataLoss, "a message to the worker holds no request");
}

}  // namespace

void worker_codec::WriteRequest(const AnyRequest& from, pb::Request& to) { WriteMessage(from, to); }

Result<AnyRequest> worker_codec::ReadRequest(const pb::Request& from) { return ReadMessage(from); }

std::string EncodeRequest(const AnyRequest& request, const CallOptions& options,
                          std::optional<Duration> time_left) {
  pb::Request message;
  message.set_wants_progress(options.progress != nullptr);
  if (time_left) message.set_time_left_ns(time_left->count());
  WriteMessage(request, message);
  return message.SerializeAsString();
}

Result<WorkerRequest> DecodeRequest(std::string_view bytes) {
  pb::Request message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error::NotApplied(Code::kDataLoss, "a message to the worker is malformed");
  }
  ASSIGN_OR_RETURN(AnyRequest request, ReadMessage(message));
  WorkerRequest decoded{std::move(request), message.wants_progress()};
  if (message.has_time_left_ns()) decoded.time_left = Duration(message.time_left_ns());
  return decoded;
}

}  // namespace volumed
