#include "os/worker_codec_devices.h"

namespace volumed::worker_codec {

void Write(const SafePath& from, worker::SafePath& to) {
  to.set_root(from.root);
  to.set_relative(from.relative);
  to.set_resolve(static_cast<uint32_t>(from.resolve));
}

SafePath Read(const worker::SafePath& from) {
  return {from.root(), from.relative(),
          from.resolve() == static_cast<uint32_t>(Resolve::kBeneath) ? Resolve::kBeneath
                                                                     : Resolve::kNoSymlinks};
}

void Write(const DeviceIdentity& from, worker::DeviceIdentity& to) {
  to.set_size_bytes(from.size_bytes);
  to.set_device_major(from.device_major);
  to.set_device_minor(from.device_minor);
  to.set_disk_sequence(from.disk_sequence);
  to.set_stable_id(from.stable_id);
  to.set_uuid(from.uuid);
}

DeviceIdentity Read(const worker::DeviceIdentity& from) {
  return {from.size_bytes(),    from.device_major(), from.device_minor(),
          from.disk_sequence(), from.stable_id(),    from.uuid()};
}

void Fill(const ProbeDevice& from, worker::Request& to) {
  worker::ProbeDevice& m = *to.mutable_probe_device();
  m.set_device(from.device);
  m.set_full_scan(from.full_scan);
  m.set_find_duplicates(from.find_duplicates);
}

void Fill(const FormatDevice& from, worker::Request& to) {
  worker::FormatDevice& m = *to.mutable_format_device();
  m.set_device(from.device);
  Write(from.expected, *m.mutable_expected());
  m.set_fs_type(from.fs_type);
  m.set_fs_uuid(from.fs_uuid);
  WriteList(from.options, m.mutable_options());
  m.set_reads_zero(from.reads_zero);
  m.set_repeat(from.repeat);
}

void Fill(const CheckFilesystem& from, worker::Request& to) {
  worker::CheckFilesystem& m = *to.mutable_check_filesystem();
  m.set_device(from.device);
  Write(from.expected, *m.mutable_expected());
  m.set_fs_type(from.fs_type);
  m.set_mode(static_cast<uint32_t>(from.mode));
}

void Fill(const CheckDeviceUse& from, worker::Request& to) {
  worker::CheckDeviceUse& m = *to.mutable_check_device_use();
  m.set_device(from.device);
  m.set_device_major(from.device_major);
  m.set_device_minor(from.device_minor);
}

void Fill(const GrowFilesystem& from, worker::Request& to) {
  worker::GrowFilesystem& m = *to.mutable_grow_filesystem();
  m.set_device(from.device);
  Write(from.expected, *m.mutable_expected());
  m.set_fs_type(from.fs_type);
  if (from.mounted_at) Write(*from.mounted_at, *m.mutable_mounted_at());
  m.set_only_measure(from.only_measure);
}

void Fill(const FlushDevice& from, worker::Request& to) {
  worker::FlushDevice& m = *to.mutable_flush_device();
  m.set_device(from.device);
  if (from.expected) Write(*from.expected, *m.mutable_expected());
}

ProbeDevice Read(const worker::ProbeDevice& from) {
  return {from.device(), from.full_scan(), from.find_duplicates()};
}

FormatDevice Read(const worker::FormatDevice& from) {
  return {from.device(),  Read(from.expected()),    from.fs_type(),
          from.fs_uuid(), ReadList(from.options()), from.reads_zero(),
          from.repeat()};
}

// What is not known writes nothing.
CheckFilesystem Read(const worker::CheckFilesystem& from) {
  return {from.device(), Read(from.expected()), from.fs_type(),
          from.mode() == static_cast<uint32_t>(CheckMode::kPreen) ? CheckMode::kPreen
                                                                  : CheckMode::kReport};
}

CheckDeviceUse Read(const worker::CheckDeviceUse& from) {
  return {from.device(), from.device_major(), from.device_minor()};
}

GrowFilesystem Read(const worker::GrowFilesystem& from) {
  return {from.device(), Read(from.expected()), from.fs_type(),
          from.has_mounted_at() ? std::optional(Read(from.mounted_at())) : std::nullopt,
          from.only_measure()};
}

FlushDevice Read(const worker::FlushDevice& from) {
  FlushDevice request{from.device()};
  if (from.has_expected()) request.expected = Read(from.expected());
  return request;
}

void Fill(const DeviceProbe& from, worker::Answer& to) {
  worker::DeviceProbe& m = *to.mutable_device_probe();
  Write(from.identity, *m.mutable_identity());
  m.set_fs_type(from.fs_type);
  m.set_usage(from.usage);
  m.set_label(from.label);
  m.set_partition_table(from.partition_table);
  m.set_read_only(from.read_only);
  m.set_bad_checksum(from.bad_checksum);
  m.set_was_mounted(from.was_mounted);
  m.set_blank(from.blank);
  m.set_read_whole(from.read_whole);
  m.set_why_not_blank(from.why_not_blank);
  m.set_bytes_read(from.bytes_read);
  m.set_duplicate(from.duplicate);
  m.set_unfinished(from.unfinished);
}

void Fill(const FilesystemCheck& from, worker::Answer& to) {
  worker::FilesystemCheck& m = *to.mutable_filesystem_check();
  m.set_result(static_cast<uint32_t>(from.result));
  m.set_exit_code(from.exit_code);
  m.set_tool(from.tool);
  m.set_output(from.output);
}

void Fill(const DeviceUsers& from, worker::Answer& to) {
  worker::DeviceUsers& m = *to.mutable_device_users();
  m.set_present(from.present);
  m.set_in_use(from.in_use);
  WriteList(from.holders, m.mutable_holders());
}

void Fill(const IdentifiedDevice& from, worker::Answer& to) {
  worker::IdentifiedDevice& m = *to.mutable_identified_device();
  Write(from.facts.identity, *m.mutable_facts()->mutable_identity());
  m.mutable_facts()->set_wwid(from.facts.wwid);
  m.mutable_facts()->set_serial(from.facts.serial);
  m.set_path(from.path);
  m.set_read_only(from.read_only);
}

IdentifiedDevice Read(const worker::IdentifiedDevice& from) {
  return {Read(from.facts()), from.path(), from.read_only(), nullptr};
}

void Fill(const FilesystemGrowth& from, worker::Answer& to) {
  worker::FilesystemGrowth& m = *to.mutable_filesystem_growth();
  m.set_fs_type(from.fs_type);
  m.set_device_bytes(from.device_bytes);
  m.set_before_bytes(from.before_bytes);
  m.set_after_bytes(from.after_bytes);
  m.set_fills_device(from.fills_device);
  m.set_has_errors(from.has_errors);
  m.set_tool(from.tool);
}

DeviceProbe Read(const worker::DeviceProbe& from) {
  DeviceProbe probe;
  probe.identity = Read(from.identity());
  probe.fs_type = from.fs_type();
  probe.usage = from.usage();
  probe.label = from.label();
  probe.partition_table = from.partition_table();
  probe.read_only = from.read_only();
  probe.bad_checksum = from.bad_checksum();
  probe.was_mounted = from.was_mounted();
  probe.blank = from.blank();
  probe.read_whole = from.read_whole();
  probe.why_not_blank = from.why_not_blank();
  probe.bytes_read = from.bytes_read();
  probe.duplicate = from.duplicate();
  probe.unfinished = from.unfinished();
  return probe;
}

FilesystemCheck Read(const worker::FilesystemCheck& from) {
  const auto known = static_cast<uint32_t>(CheckResult::kSkipped);
  return {from.result() <= known ? static_cast<CheckResult>(from.result())
                                 : CheckResult::kOperationalError,
          from.exit_code(), from.tool(), from.output()};
}

DeviceUsers Read(const worker::DeviceUsers& from) {
  return {from.present(), from.in_use(), ReadList(from.holders())};
}

DeviceFacts Read(const worker::DeviceFacts& from) {
  return {Read(from.identity()), from.wwid(), from.serial()};
}

void Write(const StorageObject& from, worker::StorageObject& to) {
  to.set_fs_type(from.fs_type);
  to.set_fs_uuid(from.fs_uuid);
  to.set_inode(from.inode);
  to.set_handle(from.handle);
}

StorageObject Read(const worker::StorageObject& from) {
  return {from.fs_type(), from.fs_uuid(), from.inode(), from.handle()};
}

void Fill(const IdentifyStorage& from, worker::Request& to) {
  worker::IdentifyStorage& m = *to.mutable_identify_storage();
  Write(from.path, *m.mutable_path());
  m.set_find_users(from.find_users);
  m.set_twins_alone(from.twins_alone);
  if (from.look_for.inode != 0) Write(from.look_for, *m.mutable_look_for());
  m.set_same_mount(from.same_mount);
}

IdentifyStorage Read(const worker::IdentifyStorage& from) {
  IdentifyStorage request;
  request.path = Read(from.path());
  request.find_users = from.find_users();
  request.twins_alone = from.twins_alone();
  request.look_for = Read(from.look_for());
  request.same_mount = from.same_mount();
  return request;
}

void Fill(const MarkStorage& from, worker::Request& to) {
  worker::MarkStorage& m = *to.mutable_mark_storage();
  Write(from.path, *m.mutable_path());
  m.set_owner(from.owner);
  m.set_replaces(from.replaces);
  Write(from.expected, *m.mutable_expected());
}

MarkStorage Read(const worker::MarkStorage& from) {
  return {Read(from.path()), from.owner(), from.replaces(), Read(from.expected())};
}

void Fill(const StorageIdentity& from, worker::Answer& to) {
  worker::StorageIdentity& m = *to.mutable_storage_identity();
  m.set_type(static_cast<uint32_t>(from.type));
  Write(from.object, *m.mutable_object());
  WriteList(from.own, m.mutable_own());
  WriteList(from.within, m.mutable_within());
  m.set_owner(from.owner);
  WriteList(from.users, m.mutable_users());
  WriteList(from.made_of, m.mutable_made_of());
  for (const StorageFile& file : from.files) {
    worker::StorageFile& to_file = *m.add_files();
    to_file.set_path(file.path);
    Write(file.object, *to_file.mutable_object());
  }
}

StorageIdentity Read(const worker::StorageIdentity& from) {
  StorageIdentity identity;
  identity.object = Read(from.object());
  identity.own = ReadList(from.own());
  identity.within = ReadList(from.within());
  identity.owner = from.owner();
  identity.users = ReadList(from.users());
  identity.made_of = ReadList(from.made_of());
  for (const worker::StorageFile& file : from.files()) {
    identity.files.push_back({file.path(), Read(file.object())});
  }
  return identity;
}

FilesystemGrowth Read(const worker::FilesystemGrowth& from) {
  return {from.fs_type(),      from.device_bytes(), from.before_bytes(), from.after_bytes(),
          from.fills_device(), from.has_errors(),   from.tool()};
}

}  // namespace volumed::worker_codec
