#include <utility>

#include "base/printable_text.h"
#include "os/worker_codec.h"
#include "os/worker_codec_composites.h"
#include "os/worker_codec_devices.h"
#include "worker.pb.h"

namespace volumed {
namespace {

namespace pb = worker;

using worker_codec::Fill;  // of the answers to composite requests, and of those about devices
using worker_codec::Read;
using worker_codec::ReadList;
using worker_codec::WriteList;

void Fill(const Done&, pb::Answer& to) { to.mutable_done(); }
void Fill(const Changed& from, pb::Answer& to) { to.mutable_changed()->set_changed(from.changed); }
void Fill(const FileInfo& from, pb::Answer& to) {
  pb::FileInfo& m = *to.mutable_file_info();
  m.set_type(static_cast<uint32_t>(from.type));
  m.set_mode(from.mode);
  m.set_uid(from.uid);
  m.set_gid(from.gid);
  m.set_device(from.device);
  m.set_inode(from.inode);
  m.set_size_bytes(from.size_bytes);
  m.set_is_mount_point(from.is_mount_point);
  m.set_device_number(from.device_number);
}
void Fill(const FsInfo& from, pb::Answer& to) {
  pb::FsInfo& m = *to.mutable_fs_info();
  m.set_fs_magic(from.fs_magic);
  m.set_capacity_bytes(from.capacity_bytes);
  m.set_available_bytes(from.available_bytes);
  m.set_used_bytes(from.used_bytes);
  m.set_inodes(from.inodes);
  m.set_inodes_free(from.inodes_free);
  m.set_inodes_used(from.inodes_used);
}
void Fill(const UsageInfo& from, pb::Answer& to) {
  to.mutable_usage_info()->set_used_bytes(from.used_bytes);
  to.mutable_usage_info()->set_inodes_used(from.inodes_used);
}
void Fill(const OwnershipInfo& from, pb::Answer& to) {
  pb::OwnershipInfo& m = *to.mutable_ownership_info();
  m.set_visited(from.visited);
  m.set_changed(from.changed);
  m.set_skipped(from.skipped);
}
void Fill(const DirectoryListing& from, pb::Answer& to) {
  pb::DirectoryListing& m = *to.mutable_directory_listing();
  for (const DirectoryEntry& entry : from.entries) {
    pb::DirectoryEntry& e = *m.add_entries();
    e.set_name(entry.name);
    e.set_type(static_cast<uint32_t>(entry.type));
  }
}
void Fill(const FileContent& from, pb::Answer& to) {
  to.mutable_file_content()->set_content(from.bytes);
}
void Fill(const MountListing& from, pb::Answer& to) {
  pb::MountListing& m = *to.mutable_mount_listing();
  for (const MountEntry& entry : from.mounts) {
    pb::MountEntry& e = *m.add_mounts();
    e.set_mount_id(entry.mount_id);
    e.set_parent_id(entry.parent_id);
    e.set_device_major(entry.device_major);
    e.set_device_minor(entry.device_minor);
    e.set_root(entry.root);
    e.set_mount_point(entry.mount_point);
    WriteList(entry.options, e.mutable_options());
    WriteList(entry.propagation, e.mutable_propagation());
    e.set_fs_type(entry.fs_type);
    e.set_source(entry.source);
    WriteList(entry.super_options, e.mutable_super_options());
  }
}
void Fill(const KernelFeatures& from, pb::Answer& to) {
  pb::KernelFeatures& m = *to.mutable_kernel_features();
  m.set_open_tree_detached_clone(from.open_tree_detached_clone);
  m.set_mount_setattr(from.mount_setattr);
  m.set_statmount(from.statmount);
  m.set_mount_events(from.mount_events);
  m.set_fchmodat2(from.fchmodat2);
  m.set_tmpfs_noswap(from.tmpfs_noswap);
}
void Fill(const ProgramEnd& from, pb::Answer& to) {
  to.mutable_program_end()->set_exit_status(from.exit_status);
  to.mutable_program_end()->set_output(from.output);
}

FileType ReadFileType(uint32_t number) {
  return number <= static_cast<uint32_t>(FileType::kFifo) ? static_cast<FileType>(number)
                                                          : FileType::kMissing;
}

FileInfo Read(const pb::FileInfo& m) {
  return {
      ReadFileType(m.type()), m.mode(),           m.uid(),          m.gid(), m.device(), m.inode(),
      m.size_bytes(),         m.is_mount_point(), m.device_number()};
}

DirectoryListing Read(const pb::DirectoryListing& m) {
  DirectoryListing listing;
  listing.entries.reserve(static_cast<size_t>(m.entries_size()));
  for (const pb::DirectoryEntry& entry : m.entries()) {
    listing.entries.push_back({entry.name(), ReadFileType(entry.type())});
  }
  return listing;
}

MountListing Read(const pb::MountListing& m) {
  MountListing listing;
  listing.mounts.reserve(static_cast<size_t>(m.mounts_size()));
  for (const pb::MountEntry& e : m.mounts()) {
    listing.mounts.push_back({e.mount_id(), e.parent_id(), e.device_major(), e.device_minor(),
                              e.root(), e.mount_point(), ReadList(e.options()),
                              ReadList(e.propagation()), e.fs_type(), e.source(),
                              ReadList(e.super_options())});
  }
  return listing;
}

Result<AnyAnswer> ReadMessage(const pb::Answer& m) {
  switch (m.answer_case()) {
    case pb::Answer::kError:
      return Error::FromParts(
          static_cast<Code>(m.error().code()),
          m.error().maybe_applied() ? Outcome::kMaybeApplied : Outcome::kNotApplied,
          m.error().sys_errno(), PrintableText(m.error().message(), "\t\n"));
    case pb::Answer::kDone:
      return AnyAnswer(Done{});
    case pb::Answer::kChanged:
      return AnyAnswer(Changed{m.changed().changed()});
    case pb::Answer::kFileInfo:
      return AnyAnswer(Read(m.file_info()));
    case pb::Answer::kFsInfo:
      return AnyAnswer(FsInfo{m.fs_info().fs_magic(), m.fs_info().capacity_bytes(),
                              m.fs_info().available_bytes(), m.fs_info().used_bytes(),
                              m.fs_info().inodes(), m.fs_info().inodes_free(),
                              m.fs_info().inodes_used()});
    case pb::Answer::kUsageInfo:
      return AnyAnswer(UsageInfo{m.usage_info().used_bytes(), m.usage_info().inodes_used()});
    case pb::Answer::kOwnershipInfo:
      return AnyAnswer(OwnershipInfo{m.ownership_info().visited(), m.ownership_info().changed(),
                                     m.ownership_info().skipped()});
    case pb::Answer::kDirectoryListing:
      return AnyAnswer(Read(m.directory_listing()));
    case pb::Answer::kFileContent:
      return AnyAnswer(FileContent{m.file_content().content()});
    case pb::Answer::kMountListing:
      return AnyAnswer(Read(m.mount_listing()));
    case pb::Answer::kKernelFeatures: {
      const pb::KernelFeatures& f = m.kernel_features();
      return AnyAnswer(KernelFeatures{f.open_tree_detached_clone(), f.mount_setattr(),
                                      f.statmount(), f.mount_events(), f.fchmodat2(),
                                      f.tmpfs_noswap()});
    }
    case pb::Answer::kDeviceProbe:
      return AnyAnswer(Read(m.device_probe()));
    case pb::Answer::kFilesystemCheck:
      return AnyAnswer(Read(m.filesystem_check()));
    case pb::Answer::kDeviceUsers:
      return AnyAnswer(Read(m.device_users()));
    case pb::Answer::kProgramEnd:
      return AnyAnswer(ProgramEnd{m.program_end().exit_status(), m.program_end().output()});
    case pb::Answer::kIdentifiedDevice:
      return AnyAnswer(Read(m.identified_device()));
    case pb::Answer::kFilesystemGrowth:
      return AnyAnswer(Read(m.filesystem_growth()));
    case pb::Answer::kStorageIdentity: {
      StorageIdentity identity = Read(m.storage_identity());
      identity.type = ReadFileType(m.storage_identity().type());
      return AnyAnswer(std::move(identity));
    }
    case pb::Answer::kEnsuredVolume:
      return AnyAnswer(Read(m.ensured_volume()));
    case pb::Answer::kBatchAnswer:
      return AnyAnswer(Read(m.batch_answer()));
    case pb::Answer::ANSWER_NOT_SET:
      break;
  }
  return Error::MaybeApplied(Code::kDataLoss, "the worker's answer is empty");
}

void WriteMessage(const Result<AnyAnswer>& answer, pb::Answer& message) {
  if (answer.ok()) {
    std::visit([&message](const auto& a) { Fill(a, message); }, *answer);
  } else {
    pb::Error& error = *message.mutable_error();
    error.set_code(static_cast<int32_t>(answer.error().code()));
    error.set_maybe_applied(answer.error().maybe_applied());
    error.set_sys_errno(answer.error().sys_errno());
    error.set_message(answer.error().message());
  }
}

}  // namespace

void worker_codec::WriteAnswer(const Result<AnyAnswer>& from, pb::Answer& to) {
  WriteMessage(from, to);
}

Result<AnyAnswer> worker_codec::ReadAnswer(const pb::Answer& from) { return ReadMessage(from); }

std::string EncodeAnswer(const Result<AnyAnswer>& answer) {
  pb::Answer message;
  WriteMessage(answer, message);
  return message.SerializeAsString();
}

int DescriptorOf(const Result<AnyAnswer>& answer) {
  if (!answer.ok()) return -1;
  const auto* device = std::get_if<IdentifiedDevice>(&*answer);
  return device == nullptr || device->hold == nullptr ? -1 : device->hold->get();
}

Result<AnyAnswer> DecodeAnswer(std::string_view bytes, Descriptor descriptor) {
  pb::Answer message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error::MaybeApplied(Code::kDataLoss, "the worker's answer is malformed");
  }
  Result<AnyAnswer> answer = ReadMessage(message);
  if (answer.ok() && descriptor.valid()) {
    if (auto* device = std::get_if<IdentifiedDevice>(&*answer)) {
      device->hold = std::make_shared<const Descriptor>(std::move(descriptor));
    }
  }
  return answer;
}

}  // namespace volumed
