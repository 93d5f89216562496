#include "os/worker_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "fakes/must.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

// A file name is bytes, not text.
const std::string kBytes("caf\xe9\xff\x01 name", 11);

SafePath Place(Resolve resolve = Resolve::kNoSymlinks) {
  return {"/root/" + kBytes, "a/b", resolve};
}

WorkerRequest RoundTrip(const AnyRequest& request) {
  CallOptions options;
  options.progress = [](int64_t) {};
  WorkerRequest decoded = Must(DecodeRequest(EncodeRequest(request, options, Duration(77))));
  EXPECT_TRUE(decoded.wants_progress);
  EXPECT_EQ(decoded.time_left, Duration(77));
  EXPECT_EQ(decoded.request.index(), request.index());
  return decoded;
}

template <typename Request>
Request Same(const Request& request) {
  return std::get<Request>(RoundTrip(request).request);
}

template <typename Answer>
Answer SameAnswer(const Answer& answer) {
  return std::get<Answer>(Must(DecodeAnswer(EncodeAnswer(Result<AnyAnswer>(AnyAnswer(answer))))));
}

TEST(WorkerCodec, ARequestWithoutADeadlineHasNoTimeLeft) {
  auto decoded = DecodeRequest(EncodeRequest(Stat{Place()}, CallOptions(), std::nullopt));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->time_left, std::nullopt);
}

TEST(WorkerCodec, MountRequestsKeepEveryField) {
  const Mount mount = Same(Mount{"tmpfs", kBytes, Place(), {"size=1", "ro"}});
  EXPECT_EQ(mount.fs_type, "tmpfs");
  EXPECT_EQ(mount.source, kBytes);
  EXPECT_EQ(mount.target, Place());
  EXPECT_EQ(mount.options, (std::vector<std::string>{"size=1", "ro"}));
  const BindMount bind = Same(BindMount{Place(Resolve::kBeneath), Place(), true, false, true});
  EXPECT_EQ(bind.source, Place(Resolve::kBeneath));
  EXPECT_EQ(bind.target, Place());
  EXPECT_TRUE(bind.read_only);
  EXPECT_FALSE(bind.recursive);
  EXPECT_TRUE(bind.recursive_read_only);
  EXPECT_TRUE(Same(BindMount{Place(), Place(), false, true, false}).recursive);
  BindMount of_part{Place(), Place()};
  of_part.expected_part = FilesystemPart{8, 1, "/a"};
  EXPECT_EQ(Same(of_part).expected_part, of_part.expected_part);
  const Remount remount = Same(Remount{Place(), {"ro"}});
  EXPECT_EQ(remount.target, Place());
  EXPECT_EQ(remount.options, std::vector<std::string>{"ro"});
  EXPECT_EQ(Same(Unmount{Place(), true}).target, Place());
  EXPECT_TRUE(Same(Unmount{Place(), true}).force);
  EXPECT_EQ(Same(MakeShared{Place()}).target, Place());
}

const DeviceIdentity kIdentity{1, 2, 3, 18446744073709551615u, kBytes, "uuid"};

TEST(WorkerCodec, DeviceRequestsKeepEveryField) {
  Mount mount{"xfs", "/dev/sdb", Place(), {}};
  EXPECT_EQ(Same(mount).expected_device, std::nullopt);
  mount.expected_device = kIdentity;
  EXPECT_EQ(Same(mount).expected_device, kIdentity);
  EXPECT_EQ(Same(ProbeDevice{kBytes, true, false}).device, kBytes);
  EXPECT_TRUE(Same(ProbeDevice{kBytes, true, false}).full_scan);
  EXPECT_FALSE(Same(ProbeDevice{kBytes, true, false}).find_duplicates);
  EXPECT_TRUE(Same(ProbeDevice{kBytes, false, true}).find_duplicates);
  const FormatDevice format =
      Same(FormatDevice{"/d", kIdentity, "ext4", "u", {"-E", kBytes}, true});
  EXPECT_EQ(format.device, "/d");
  EXPECT_EQ(format.expected, kIdentity);
  EXPECT_EQ(format.fs_type, "ext4");
  EXPECT_EQ(format.fs_uuid, "u");
  EXPECT_EQ(format.options, (std::vector<std::string>{"-E", kBytes}));
  EXPECT_TRUE(format.reads_zero);
  EXPECT_FALSE(format.repeat);
  EXPECT_TRUE(Same(FormatDevice{"/d", {}, "", "", {}, false, true}).repeat);
  EXPECT_EQ(Same(FlushDevice{kBytes}).device, kBytes);
  EXPECT_EQ(Same(FlushDevice{kBytes}).expected, std::nullopt);
  const CheckFilesystem check = Same(CheckFilesystem{"/d", kIdentity, "xfs", CheckMode::kReport});
  EXPECT_EQ(check.device, "/d");
  EXPECT_EQ(check.expected, kIdentity);
  EXPECT_EQ(check.fs_type, "xfs");
  EXPECT_EQ(check.mode, CheckMode::kReport);
  EXPECT_EQ(Same(CheckFilesystem{"/d", {}, "", CheckMode::kPreen}).mode, CheckMode::kPreen);
  const CheckDeviceUse use = Same(CheckDeviceUse{kBytes, 8, 17});
  EXPECT_EQ(use.device, kBytes);
  EXPECT_EQ(use.device_major, 8u);
  EXPECT_EQ(use.device_minor, 17u);
}

TEST(WorkerCodec, AGrowthKeepsEveryField) {
  const GrowFilesystem grow = Same(GrowFilesystem{"/d", kIdentity, "xfs", Place(), false});
  EXPECT_EQ(grow.device, "/d");
  EXPECT_EQ(grow.expected, kIdentity);
  EXPECT_EQ(grow.fs_type, "xfs");
  EXPECT_EQ(grow.mounted_at, Place());
  EXPECT_FALSE(grow.only_measure);
  EXPECT_TRUE(Same(GrowFilesystem{"/d", {}, "", std::nullopt, true}).only_measure);
  EXPECT_FALSE(Same(GrowFilesystem{"/d", {}, "", std::nullopt, true}).mounted_at.has_value());
  const FilesystemGrowth growth{"ext4", int64_t{5} << 40, 1, 2, true, false, kBytes};
  EXPECT_EQ(SameAnswer(growth), growth);
  FilesystemGrowth other = growth;
  other.fills_device = false;
  other.has_errors = true;
  EXPECT_EQ(SameAnswer(other), other);
}

TEST(WorkerCodec, DeviceAnswersKeepEveryField) {
  DeviceProbe probe;
  probe.identity = kIdentity;
  probe.fs_type = "ext4";
  probe.usage = "filesystem";
  probe.label = kBytes;
  probe.partition_table = "gpt";
  probe.read_only = probe.bad_checksum = true;
  probe.why_not_blank = "why";
  probe.bytes_read = int64_t{1} << 40;
  probe.duplicate = "/dev/sdc";
  DeviceProbe same = SameAnswer(probe);
  EXPECT_EQ(same.identity, kIdentity);
  EXPECT_EQ(same.fs_type, "ext4");
  EXPECT_EQ(same.usage, "filesystem");
  EXPECT_EQ(same.label, kBytes);
  EXPECT_EQ(same.partition_table, "gpt");
  EXPECT_TRUE(same.read_only);
  EXPECT_TRUE(same.bad_checksum);
  EXPECT_FALSE(same.was_mounted);
  EXPECT_FALSE(same.blank);
  EXPECT_FALSE(same.unfinished);
  EXPECT_FALSE(same.spans_devices);
  EXPECT_FALSE(same.read_whole);
  EXPECT_EQ(same.why_not_blank, "why");
  EXPECT_EQ(same.bytes_read, int64_t{1} << 40);
  EXPECT_EQ(same.duplicate, "/dev/sdc");
  probe = DeviceProbe();
  probe.was_mounted = probe.blank = probe.read_whole = probe.unfinished = true;
  probe.spans_devices = true;
  same = SameAnswer(probe);
  EXPECT_FALSE(same.read_only);
  EXPECT_FALSE(same.bad_checksum);
  EXPECT_TRUE(same.was_mounted);
  EXPECT_TRUE(same.blank);
  EXPECT_TRUE(same.unfinished);
  EXPECT_TRUE(same.spans_devices);
  EXPECT_TRUE(same.read_whole);
  const DeviceUsers use = SameAnswer(DeviceUsers{true, false, {"dm-0", kBytes}});
  EXPECT_TRUE(use.present);
  EXPECT_FALSE(use.in_use);
  EXPECT_EQ(use.holders, (std::vector<std::string>{"dm-0", kBytes}));
  EXPECT_TRUE(SameAnswer(DeviceUsers{false, true, {}}).in_use);
  const DeviceFacts facts{kIdentity, "naa.5", kBytes};
  EXPECT_EQ(SameAnswer(IdentifiedDevice{facts, "/dev/x", true, nullptr}).facts, facts);
  const FilesystemCheck check =
      SameAnswer(FilesystemCheck{CheckResult::kUncorrected, 12, "e2fsck -a", kBytes});
  EXPECT_EQ(check.result, CheckResult::kUncorrected);
  EXPECT_EQ(check.exit_code, 12);
  EXPECT_EQ(check.tool, "e2fsck -a");
  EXPECT_EQ(check.output, kBytes);
}

TEST(WorkerCodec, WhatBlockVolumesNeedKeepsEveryField) {
  const DeviceIdentity identity{1, 2, 3, 4, kBytes, "uuid"};
  BindMount bind{Place(), Place()};
  EXPECT_EQ(Same(bind).expected_device, std::nullopt);
  bind.expected_device = identity;
  EXPECT_EQ(Same(bind).expected_device, identity);
  const IdentifyDevice identify = Same(IdentifyDevice{Place(Resolve::kBeneath), true, true});
  EXPECT_EQ(identify.path, Place(Resolve::kBeneath));
  EXPECT_TRUE(identify.pin);
  EXPECT_TRUE(identify.count_writes);
  EXPECT_EQ(Same(FlushDevice{kBytes, identity}).expected, identity);
  EXPECT_EQ(Same(DetachLoops{Place()}).path, Place());
  EXPECT_EQ(Same(MakeSymlink{Place(), kBytes}).path, Place());
  EXPECT_EQ(Same(MakeSymlink{Place(), kBytes}).leads_to, kBytes);
  EXPECT_EQ(Same(ReadLink{Place()}).path, Place());
  const IdentifiedDevice device =
      SameAnswer(IdentifiedDevice{{identity, "", ""}, kBytes, true, nullptr, "/dev/x", 512, "w"});
  EXPECT_EQ(device.facts.identity, identity);
  EXPECT_EQ(device.path, kBytes);
  EXPECT_EQ(device.node, "/dev/x");
  EXPECT_EQ(device.block_bytes, 512u);
  EXPECT_EQ(device.writes, "w");
  EXPECT_TRUE(device.read_only);
  EXPECT_EQ(device.pin, nullptr);
}

TEST(WorkerCodec, WhatTellsStorageFromStorageKeepsEveryField) {
  const StorageObject object{kBytes, "uuid", 3, "1:ab"};
  IdentifyStorage request{Place(Resolve::kBeneath), true};
  request.look_for = object;
  const IdentifyStorage identify = Same(request);
  EXPECT_EQ(identify.path, Place(Resolve::kBeneath));
  EXPECT_TRUE(identify.find_users);
  EXPECT_TRUE(Same(IdentifyStorage{Place(), true, true}).twins_alone);
  EXPECT_EQ(identify.look_for, object);
  const MarkStorage mark = Same(MarkStorage{Place(), kBytes, "before", object});
  EXPECT_EQ(mark.path, Place());
  EXPECT_EQ(mark.owner, kBytes);
  EXPECT_EQ(mark.replaces, "before");
  EXPECT_EQ(mark.expected, object);
  const RemoveTree removal = Same(RemoveTree{Place(), true, object});
  EXPECT_TRUE(removal.content_alone);
  EXPECT_EQ(removal.expected, object);
  BindMount bind{Place(), Place()};
  bind.expected = object;
  EXPECT_EQ(Same(bind).expected, object);
  StorageIdentity identity;
  identity.type = FileType::kDirectory;
  identity.object = object;
  identity.own = {kBytes, "b"};
  identity.within = {"c", kBytes};
  identity.made_of = {"c"};
  identity.owner = "a claim";
  identity.users = {"/dev/loop1"};
  identity.files = {{kBytes, object}};
  EXPECT_EQ(SameAnswer(identity), identity);
}

TEST(WorkerCodec, WhatImagesNeedKeepsEveryField) {
  const StorageObject object{"xfs", "uuid", 3, "1:ab"};
  const AttachLoop attach = Same(AttachLoop{Place(), object, true, false, 512});
  EXPECT_EQ(attach.path, Place());
  EXPECT_EQ(attach.expected, object);
  EXPECT_TRUE(attach.read_only);
  EXPECT_FALSE(attach.direct_io);
  EXPECT_EQ(attach.block_size, 512u);
  EXPECT_TRUE(Same(AttachLoop{Place()}).direct_io);
  EXPECT_EQ(Same(ListLoops{Place()}).path, Place());
  const ConfigureLoop configure = Same(ConfigureLoop{kBytes, kIdentity, true, false, 4096});
  EXPECT_EQ(configure.device, kBytes);
  EXPECT_EQ(configure.expected, kIdentity);
  EXPECT_TRUE(configure.refresh_size);
  EXPECT_EQ(configure.direct_io, false);
  EXPECT_EQ(configure.read_ahead_kib, 4096);
  EXPECT_EQ(Same(ConfigureLoop{kBytes, kIdentity}).direct_io, std::nullopt);
  EXPECT_EQ(Same(ConfigureLoop{kBytes, kIdentity}).read_ahead_kib, std::nullopt);
  EXPECT_EQ(Same(ConfigureLoop{kBytes, kIdentity, false, {}, 0}).read_ahead_kib, 0);
  const SetFileSize set = Same(SetFileSize{Place(), true, object, int64_t{1} << 40, true, 0640});
  EXPECT_EQ(set.path, Place());
  EXPECT_TRUE(set.make);
  EXPECT_EQ(set.expected, object);
  EXPECT_EQ(set.bytes, int64_t{1} << 40);
  EXPECT_TRUE(set.allocate);
  EXPECT_EQ(set.mode, 0640u);
  const TakeFileLock take = Same(TakeFileLock{Place(), kBytes});
  EXPECT_EQ(take.path, Place());
  EXPECT_EQ(take.content, kBytes);

  const LoopEntry loop{"/dev/loop3", kBytes, true, int64_t{1} << 40, 4096, true, false};
  EXPECT_EQ(SameAnswer(LoopList{{loop}}).loops, std::vector<LoopEntry>{loop});
  const FileExtent extent{object, int64_t{1} << 40, 4096, true};
  EXPECT_EQ(SameAnswer(extent), extent);
  AttachedLoop attached;
  attached.device.path = "/dev/loop3";
  attached.direct_io = true;
  EXPECT_EQ(SameAnswer(attached).device.path, "/dev/loop3");
  EXPECT_TRUE(SameAnswer(attached).direct_io);
  EXPECT_FALSE(SameAnswer(attached).changed);
}

TEST(WorkerCodec, WhatCutsNeedKeepsEveryField) {
  const StorageObject object{"xfs", "uuid", 3, "1:ab"};
  const SafePath other{"/other", kBytes};
  const CloneFile clone = Same(CloneFile{Place(), object, other});
  EXPECT_EQ(clone.from, Place());
  EXPECT_EQ(clone.expected, object);
  EXPECT_EQ(clone.to, other);
  const CopyFile copy = Same(CopyFile{Place(), object, other, int64_t{1} << 40, 5000});
  EXPECT_EQ(copy.to, other);
  EXPECT_EQ(copy.from_offset, int64_t{1} << 40);
  EXPECT_EQ(copy.bytes_per_second, 5000);
  const CopyDevice whole =
      Same(CopyDevice{kBytes, kIdentity, other, 8192, 4096, 5000, true, kBytes});
  EXPECT_EQ(whole.device, kBytes);
  EXPECT_EQ(whole.expected, kIdentity);
  EXPECT_EQ(whole.to, other);
  EXPECT_EQ(whole.bytes, 8192);
  EXPECT_EQ(whole.from_offset, 4096);
  EXPECT_EQ(whole.bytes_per_second, 5000);
  EXPECT_TRUE(whole.only_look);
  EXPECT_EQ(whole.writes, kBytes);
  const SetReadAhead ahead = Same(SetReadAhead{kBytes, kIdentity, 4096});
  EXPECT_EQ(ahead.device, kBytes);
  EXPECT_EQ(ahead.expected, kIdentity);
  EXPECT_EQ(ahead.kib, 4096);
  const ListExtents list = Same(ListExtents{Place(), object, 4096, 7});
  EXPECT_EQ(list.from_offset, 4096);
  EXPECT_EQ(list.most, 7u);
  const FreezePoint point{Place(), 7, 3};
  const CutPart part{Place(), object, other};
  const CutFrozen cut = Same(CutFrozen{{point}, {other}, {part, part}, 1, 2, 3});
  EXPECT_EQ(cut.freeze, std::vector<FreezePoint>{point});
  EXPECT_EQ(cut.never, std::vector<SafePath>{other});
  EXPECT_EQ(cut.cuts, (std::vector<CutPart>{part, part}));
  EXPECT_EQ(cut.longest_us, 1);
  EXPECT_EQ(cut.sync_until_us, 2);
  EXPECT_EQ(cut.syncs_most, 3u);
  EXPECT_EQ(Same(ThawFilesystem{point}).point, point);
  const ChangeFilesystemUuid change =
      Same(ChangeFilesystemUuid{Place(), object, "xfs", "old", "new"});
  EXPECT_EQ(change.fs_type, "xfs");
  EXPECT_EQ(change.old_uuid, "old");
  EXPECT_EQ(change.new_uuid, "new");

  const ExtentList extents{{{0, int64_t{1} << 40, 4096, 1}}, true};
  EXPECT_EQ(SameAnswer(extents), extents);
  const FrozenCut made{{{object, 4096, 0, true}}, 5, 6};
  EXPECT_EQ(SameAnswer(made).files, made.files);
  EXPECT_EQ(SameAnswer(made).frozen_us, 5);
  EXPECT_EQ(SameAnswer(made).stall_us, 6);
  const FilesystemName name{"xfs", "new", true};
  EXPECT_EQ(SameAnswer(name), name);
}

TEST(WorkerCodec, WhatTreesNeedKeepsEveryField) {
  const StorageObject object{"btrfs", "uuid", 256, "77:ab"};
  const SafePath other{"/other", kBytes};
  const MakeSubvolume snapshot = Same(MakeSubvolume{Place(), other, object, true});
  EXPECT_EQ(snapshot.path, Place());
  EXPECT_EQ(snapshot.of, other);
  EXPECT_EQ(snapshot.expected, object);
  EXPECT_TRUE(snapshot.read_only);
  EXPECT_EQ(Same(MakeSubvolume{Place()}).of, std::nullopt);
  EXPECT_EQ(Same(RemoveSubvolume{Place(), object}).path, Place());
  EXPECT_EQ(Same(RemoveSubvolume{Place(), object}).expected, object);
  const SetTreeQuota set =
      Same(SetTreeQuota{Place(), object, 4294967295u, int64_t{1} << 40, int64_t{1} << 41});
  EXPECT_EQ(set.path, Place());
  EXPECT_EQ(set.expected, object);
  EXPECT_EQ(set.project_id, 4294967295u);
  EXPECT_EQ(set.bytes, int64_t{1} << 40);
  EXPECT_EQ(set.inodes, int64_t{1} << 41);
  EXPECT_FALSE(set.limit_alone);
  SetTreeQuota alone{Place()};
  alone.limit_alone = true;
  EXPECT_TRUE(Same(alone).limit_alone);
  EXPECT_EQ(Same(ReadTreeQuota{Place()}).path, Place());
  const TreeQuota quota{TreeQuotaKind::kQgroup, uint64_t{1} << 63, 1, 2, 3, 4};
  EXPECT_EQ(SameAnswer(quota), quota);
}

TEST(WorkerCodec, WhatMovesOrCopiesATreeKeepsEveryField) {
  const StorageObject object{"xfs", "uuid", 77, "1:ab"};
  const SafePath other{"/other", kBytes};
  const MoveDirectory move = Same(MoveDirectory{Place(), other, object});
  EXPECT_EQ(move.to, Place());
  EXPECT_EQ(move.from, other);
  EXPECT_EQ(move.expected, object);
  const CopyTree copy = Same(CopyTree{Place(), other, object, int64_t{1} << 40, int64_t{1} << 41});
  EXPECT_EQ(copy.to, Place());
  EXPECT_EQ(copy.from, other);
  EXPECT_EQ(copy.expected, object);
  EXPECT_EQ(copy.bytes_per_second, int64_t{1} << 40);
  EXPECT_EQ(copy.most_bytes, int64_t{1} << 41);
  const TreeCopied copied = SameAnswer(TreeCopied{int64_t{1} << 40, true});
  EXPECT_EQ(copied.allocated_bytes, int64_t{1} << 40);
  EXPECT_TRUE(copied.shares_blocks);
}

TEST(WorkerCodec, LimitsOfACgroupKeepEveryField) {
  const IoLimits limits{1, 2, int64_t{1} << 40, 4};
  const SetIoLimits set = Same(SetIoLimits{kBytes, kIdentity, {"a/b", kBytes}, limits});
  EXPECT_EQ(set.device, kBytes);
  EXPECT_EQ(set.expected, kIdentity);
  EXPECT_EQ(set.cgroups, (std::vector<std::string>{"a/b", kBytes}));
  EXPECT_EQ(set.limits, limits);
  const CgroupIoLimits answer{kBytes, limits, true, true};
  EXPECT_EQ(SameAnswer(answer), answer);
}

TEST(WorkerCodec, ALockIsAnErrorWithoutItsDescriptor) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor other(ends[1]);
  const Result<AnyAnswer> answer =
      AnyAnswer(FileLock{std::make_shared<const Descriptor>(Descriptor(ends[0]))});
  EXPECT_EQ(DescriptorOf(answer), ends[0]);
  const auto without = DecodeAnswer(EncodeAnswer(answer));
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().code(), Code::kDataLoss);
  EXPECT_TRUE(without.error().maybe_applied());
  auto sent = std::get<FileLock>(*answer).pin->Duplicate();
  ASSERT_TRUE(sent.ok());
  const int number = sent->get();
  const auto decoded = DecodeAnswer(EncodeAnswer(answer), std::move(*sent));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<FileLock>(*decoded).pin->get(), number);
}

TEST(WorkerCodec, ADescriptorGoesBesideItsAnswerAndBelongsToWhoeverDecodesIt) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor other(ends[1]);
  const Result<AnyAnswer> answer = AnyAnswer(IdentifiedDevice{
      {}, "/dev/x", false, std::make_shared<const Descriptor>(Descriptor(ends[0]))});
  EXPECT_EQ(DescriptorOf(answer), ends[0]);
  EXPECT_EQ(DescriptorOf(Result<AnyAnswer>(AnyAnswer(Done{}))), -1);
  auto sent = std::get<IdentifiedDevice>(*answer).pin->Duplicate();
  ASSERT_TRUE(sent.ok());
  const int number = sent->get();
  const auto decoded = DecodeAnswer(EncodeAnswer(answer), std::move(*sent));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<IdentifiedDevice>(*decoded).pin->get(), number);
}

TEST(WorkerCodec, FileRequestsKeepEveryField) {
  EXPECT_EQ(Same(Stat{Place(), true, false}).path, Place());
  EXPECT_TRUE(Same(Stat{Place(), true, false}).follow);
  EXPECT_TRUE(Same(Stat{Place(), false, true}).only_mount_point);
  const MakeDirectory made = Same(MakeDirectory{Place(), 02750, 0711, true});
  EXPECT_EQ(made.path, Place());
  EXPECT_EQ(made.mode, 02750u);
  EXPECT_EQ(made.parent_mode, 0711u);
  EXPECT_TRUE(made.exact_mode);
  EXPECT_EQ(Same(MakeDirectory{Place(), 0}).parent_mode, std::nullopt);
  // A mode of zero is a mode.
  EXPECT_EQ(Same(MakeDirectory{Place(), 0, 0}).parent_mode, 0u);
  EXPECT_EQ(Same(MakeFile{Place(), 0640}).mode, 0640u);
  EXPECT_EQ(Same(MakeFile{Place(), 0640}).path, Place());
  EXPECT_EQ(Same(RemoveDirectory{Place()}).path, Place());
  EXPECT_TRUE(Same(RemoveDirectory{.path = Place(), .synced = true}).synced);
  EXPECT_EQ(Same(RemoveFile{Place()}).path, Place());
  EXPECT_EQ(Same(RemoveTree{Place()}).path, Place());
  EXPECT_EQ(Same(ListDirectory{Place()}).path, Place());
  EXPECT_EQ(Same(ReadFile{Place()}).path, Place());
  EXPECT_EQ(Same(ReadFile{Place(), 7}).max_bytes, 7u);
}

TEST(WorkerCodec, WalkAndTableRequestsKeepEveryField) {
  EXPECT_EQ(Same(StatFs{Place()}).path, Place());
  EXPECT_EQ(Same(Usage{Place()}).path, Place());
  const ChangeOwnership change = Same(ChangeOwnership{Place(), 4294967294u, true, true});
  EXPECT_EQ(change.path, Place());
  EXPECT_EQ(change.gid, 4294967294u);
  EXPECT_TRUE(change.read_only);
  EXPECT_TRUE(change.on_root_mismatch);
  EXPECT_EQ(Same(ListMounts{"/a b\xff"}).below, "/a b\xff");
  EXPECT_EQ(Same(ListMounts{}).below, "");
  EXPECT_EQ(Same(ListMounts{}).showing, std::nullopt);
  EXPECT_EQ(Same(ListMounts{.around = kBytes}).around, kBytes);
  const FilesystemPart part{8, 4294967295u, kBytes};
  EXPECT_EQ(Same(ListMounts{.showing = part}).showing, part);
  EXPECT_EQ(Same(RunProgram{{"/bin/a", kBytes}}).arguments,
            (std::vector<std::string>{"/bin/a", kBytes}));
  const RunProgram secret =
      Same(RunProgram{{"/bin/a", "", "c"}, {{1, Secret<std::string>(kBytes)}}, 7});
  ASSERT_EQ(secret.secret_arguments.size(), 1u);
  EXPECT_EQ(secret.secret_arguments.at(1).Reveal(), kBytes);
  EXPECT_EQ(secret.output_bytes, 7u);
  EXPECT_FALSE(secret.own_scope);
  EXPECT_TRUE(Same(RunProgram{{"/bin/a"}, {}, 7, true}).own_scope);
  const WriteFile write = Same(WriteFile{Place(), Secret<std::string>(kBytes), 04755});
  EXPECT_EQ(write.path, Place());
  EXPECT_EQ(write.content.Reveal(), kBytes);
  EXPECT_EQ(write.mode, 04755u);
  EXPECT_FALSE(write.unsynced);
  EXPECT_TRUE(Same(WriteFile{Place(), Secret<std::string>(kBytes), 0, true}).unsynced);
  EXPECT_EQ(Same(WriteAttribute{Place(), kBytes}).path, Place());
  EXPECT_EQ(Same(WriteAttribute{Place(), kBytes}).value, kBytes);
  EXPECT_EQ(SameAnswer(ProgramEnd{137, kBytes}).exit_status, 137);
  EXPECT_EQ(SameAnswer(ProgramEnd{0, kBytes}).output, kBytes);
  RoundTrip(ProbeFeatures{});
}

TEST(WorkerCodec, PayloadsKeepEveryField) {
  WriteAtomicPayload payload{Place(), {}, 7};
  payload.files.push_back({"a/b", Secret<std::string>(std::string("\0binary", 7)), 0400, 1000});
  payload.files.push_back({"c", Secret<std::string>(""), 0});
  const WriteAtomicPayload same = Same(payload);
  EXPECT_EQ(same.target, Place());
  EXPECT_EQ(same.gid, 7u);
  ASSERT_EQ(same.files.size(), 2u);
  EXPECT_EQ(same.files[0].path, "a/b");
  EXPECT_EQ(same.files[0].content.Reveal(), std::string("\0binary", 7));
  EXPECT_EQ(same.files[0].mode, 0400u);
  EXPECT_EQ(same.files[0].uid, 1000u);
  EXPECT_EQ(same.files[1].uid, std::nullopt);
  EXPECT_EQ(Same(WriteAtomicPayload{Place(), {}}).gid, std::nullopt);
}

TEST(WorkerCodec, SmallAnswersKeepEveryField) {
  SameAnswer(Done{});
  EXPECT_EQ(SameAnswer(Changed{true}), Changed{true});
  EXPECT_EQ(SameAnswer(Changed{false}), Changed{false});
  const FileInfo info = SameAnswer(FileInfo{FileType::kFifo, 07777, 1, 2, 3, 4, 5, true, 6, 7});
  EXPECT_EQ(info.type, FileType::kFifo);
  EXPECT_EQ(info.mode, 07777u);
  EXPECT_EQ(info.uid, 1u);
  EXPECT_EQ(info.gid, 2u);
  EXPECT_EQ(info.device, 3u);
  EXPECT_EQ(info.inode, 4u);
  EXPECT_EQ(info.size_bytes, 5);
  EXPECT_TRUE(info.is_mount_point);
  EXPECT_EQ(info.device_number, 6u);
  EXPECT_EQ(info.allocated_bytes, 7);
  const FsInfo fs = SameAnswer(FsInfo{1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(fs.fs_magic, 1u);
  EXPECT_EQ(fs.capacity_bytes, 2);
  EXPECT_EQ(fs.available_bytes, 3);
  EXPECT_EQ(fs.used_bytes, 4);
  EXPECT_EQ(fs.inodes, 5);
  EXPECT_EQ(fs.inodes_free, 6);
  EXPECT_EQ(fs.inodes_used, 7);
  EXPECT_EQ(SameAnswer(UsageInfo{1, 2}).used_bytes, 1);
  EXPECT_EQ(SameAnswer(UsageInfo{1, 2}).inodes_used, 2);
  const OwnershipInfo ownership = SameAnswer(OwnershipInfo{9, 8, true});
  EXPECT_EQ(ownership.visited, 9);
  EXPECT_EQ(ownership.changed, 8);
  EXPECT_TRUE(ownership.skipped);
  EXPECT_EQ(SameAnswer(FileContent{kBytes}).bytes, kBytes);
}

TEST(WorkerCodec, ListingsKeepEveryField) {
  DirectoryListing listing;
  for (const FileType type :
       {FileType::kMissing, FileType::kRegular, FileType::kDirectory, FileType::kSymlink,
        FileType::kSocket, FileType::kCharDevice, FileType::kBlockDevice, FileType::kFifo}) {
    listing.entries.push_back({kBytes, type});
  }
  EXPECT_EQ(SameAnswer(listing).entries, listing.entries);

  MountListing mounts;
  mounts.mounts.push_back({1,
                           2,
                           3,
                           4,
                           "/r",
                           "/" + kBytes,
                           {"ro"},
                           {"shared:1"},
                           "ext4",
                           "/dev/x",
                           {"rw", "data=ordered"}});
  const MountEntry entry = SameAnswer(mounts).mounts.at(0);
  EXPECT_EQ(entry.mount_id, 1u);
  EXPECT_EQ(entry.parent_id, 2u);
  EXPECT_EQ(entry.device_major, 3u);
  EXPECT_EQ(entry.device_minor, 4u);
  EXPECT_EQ(entry.root, "/r");
  EXPECT_EQ(entry.mount_point, "/" + kBytes);
  EXPECT_EQ(entry.options, mounts.mounts[0].options);
  EXPECT_EQ(entry.propagation, mounts.mounts[0].propagation);
  EXPECT_EQ(entry.fs_type, "ext4");
  EXPECT_EQ(entry.source, "/dev/x");
  EXPECT_EQ(entry.super_options, mounts.mounts[0].super_options);
}

TEST(WorkerCodec, EachKernelFeatureKeepsItsPlace) {
  for (bool KernelFeatures::*feature :
       {&KernelFeatures::open_tree_detached_clone, &KernelFeatures::mount_setattr,
        &KernelFeatures::statmount, &KernelFeatures::mount_events, &KernelFeatures::fchmodat2,
        &KernelFeatures::tmpfs_noswap, &KernelFeatures::grows_mounted_ext,
        &KernelFeatures::fsopen}) {
    KernelFeatures features;
    features.*feature = true;
    const KernelFeatures same = SameAnswer(features);
    EXPECT_TRUE(same.*feature);
    EXPECT_EQ(same.open_tree_detached_clone + same.mount_setattr + same.statmount +
                  same.mount_events + same.fchmodat2 + same.tmpfs_noswap + same.grows_mounted_ext +
                  same.fsopen,
              1);
  }
}

TEST(WorkerCodec, ErrorsKeepCodeOutcomeErrnoAndText) {
  for (const Error& error : {Error::FromErrno(ENOSPC, "write", Outcome::kMaybeApplied),
                             Error::NotApplied(Code::kUnimplemented, "missing"),
                             Error::MaybeApplied(Code::kCancelled, "")}) {
    auto decoded = DecodeAnswer(EncodeAnswer(Result<AnyAnswer>(error)));
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.error(), error);
  }
  // Its text is for people.
  const Error named = Error::FromErrno(ENOSPC, "write " + kBytes, Outcome::kMaybeApplied);
  const auto decoded = DecodeAnswer(EncodeAnswer(Result<AnyAnswer>(named)));
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().message(), PrintableText(named.message()));
}

TEST(WorkerCodec, GarbageIsAnErrorAndNotAnAnswer) {
  EXPECT_EQ(DecodeRequest("\xff\xff\xff").error().code(), Code::kDataLoss);
  EXPECT_FALSE(DecodeRequest("\xff\xff\xff").error().maybe_applied());
  EXPECT_EQ(DecodeRequest("").error().code(), Code::kDataLoss);
  EXPECT_EQ(DecodeAnswer("\xff\xff\xff").error().code(), Code::kDataLoss);
  // Whatever the worker wanted to say, it may have done something.
  EXPECT_TRUE(DecodeAnswer("").error().maybe_applied());
}

}  // namespace
}  // namespace volumed
