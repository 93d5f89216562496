#include "integration/differential/request_generator.h"

#include <array>
#include <cstddef>
#include <utility>

namespace volumed {
namespace {

// Names that the world begins with (see BuildWorld in the test), and some that it does not.
constexpr const char* kPaths[] = {
    "a",     "a/b",  "a/b/c", "a/f", "a/b/g", "d",  "d/e",      "e",   "f",
    "hard",  "fifo", "sock",  "la",  "la/f",  "lf", "lx",       "lup", "lself",
    "lb",    "a/lb", "n",     "n/m", "n/m/k", "p",  "p/..data", "p/x", "p/d",
    "p/d/x", "f/no", "a/b",   "d",   "e",     "m",  "m",        "m/a", "m/b"};

constexpr const char* kTamePaths[] = {"a",     "a",        "a/b", "a/b/g", "d",   "d/e", "m",
                                      "m",     "m/a",      "m/b", "p",     "p/x", "e",   "f",
                                      "a/f",   "la",       "lf",  "a/lb",  "m/e", "d/a", "n",
                                      "a/b/x", "p/..data", "lb",  "m/d/e", "hard"};
constexpr const char* kBroken[] = {"a//b", "..", "a/../b", "/a", "a/", ".", "a/./b"};

constexpr const char* kTmpfsWords[] = {
    "ro",          "nosuid",   "nodev",    "noexec",      "noatime",    "noswap",
    "_netdev",     "size=1m",  "size=0",   "size=x",      "bogus",      "bind",
    "nr_inodes=3", "gid=1000", "uid=2000", "strictatime", "nodiratime", "size=4k"};
constexpr const char* kRemountWords[] = {
    "ro",       "ro",          "rw",         "rw",      "nosuid",  "suid",    "nodev",   "noatime",
    "relatime", "strictatime", "nodiratime", "size=2m", "size=4k", "bogus=1", "remount", "noswap"};
constexpr const char* kPayloadPaths[] = {"x", "y", "d/x", "d/y", "d/e/z", "a", "m", "y/x"};
constexpr const char* kBadPayloadPaths[] = {"x/no/", "../x", "..x", "x/../y", "/x", ""};

template <typename T, size_t N>
T Pick(RequestGenerator& random, T (&list)[N]) {
  return list[random.Below(static_cast<uint32_t>(N))];
}

}  // namespace

std::string RequestGenerator::Relative() {
  if (tame_) return Pick(*this, kTamePaths);
  if (OneIn(60)) return Pick(*this, kBroken);
  if (OneIn(200)) return std::string(300, 'x');
  std::string path = Pick(*this, kPaths);
  if (OneIn(12)) path += "/" + std::string(Pick(*this, kPaths));
  return path;
}

SafePath RequestGenerator::Path() {
  SafePath path;
  path.root = world_;
  path.resolve = OneIn(3) ? Resolve::kBeneath : Resolve::kNoSymlinks;
  if (OneIn(25)) return path;
  path.relative = Relative();
  if (tame_) return path;
  if (OneIn(8)) {
    path.root += "/" + std::string(Pick(*this, kPaths));
    if (OneIn(3)) path.relative.clear();
  } else if (OneIn(12)) {
    path.relative = path.root.substr(path.root.rfind('/') + 1) + "/" + path.relative;
    path.root = path.root.substr(0, path.root.rfind('/'));
  }
  return path;
}

SafePath RequestGenerator::MountPoint() {
  constexpr const char* kPoints[] = {"", "m", "m", "m", "a", "a/b", "d", "d/e", "f", "a/f"};
  return {world_, Pick(*this, kPoints), OneIn(3) ? Resolve::kBeneath : Resolve::kNoSymlinks};
}

uint32_t RequestGenerator::Mode() {
  constexpr uint32_t kModes[] = {0755, 0750, 0700, 0644, 02775, 0600, 04755, 01755, 06711, 0};
  return Pick(*this, kModes);
}

uint32_t RequestGenerator::Gid() {
  constexpr uint32_t kGids[] = {0, 1000, 1000, 2000};
  return Pick(*this, kGids);
}

std::vector<std::string> RequestGenerator::TmpfsOptions() {
  std::vector<std::string> options = {"size=256k", "nr_inodes=40", "mode=0755"};
  while (OneIn(tame_ ? 6 : 3)) options.push_back(Pick(*this, kTmpfsWords));
  return options;
}

PayloadFile RequestGenerator::File() {
  PayloadFile file;
  file.path = OneIn(50) ? Pick(*this, kBadPayloadPaths) : Pick(*this, kPayloadPaths);
  constexpr size_t kSizes[] = {0, 1, 1, 5000};
  file.content =
      Secret<std::string>(std::string(Pick(*this, kSizes), static_cast<char>('a' + Below(2))));
  if (OneIn(200)) file.content = Secret<std::string>(std::string(300 * 1024, 'z'));
  constexpr uint32_t kModes[] = {0644, 0644, 0600, 0400, 04755};
  file.mode = Pick(*this, kModes);
  if (OneIn(4)) file.uid = 1000;
  return file;
}

// ---- one maker per request; kWeight is its share ------------------------------------------------

template <>
struct RequestGenerator::Maker<ListMounts> {
  static constexpr uint32_t kWeight = 2;
  static ListMounts Make(RequestGenerator& g) {
    const auto path = [&g] { return g.OneIn(2) ? g.MountPoint().Display() : g.Path().Display(); };
    ListMounts list;  // CompareWorlds asks what shows where: numbers differ between the worlds
    if (g.OneIn(2)) list.below = path();
    if (g.OneIn(3)) list.around = path();
    return list;
  }
};
template <>
struct RequestGenerator::Maker<ProbeFeatures> {
  static constexpr uint32_t kWeight = 1;
  static ProbeFeatures Make(RequestGenerator&) { return {}; }
};
template <>
struct RequestGenerator::Maker<Mount> {
  static constexpr uint32_t kWeight = 5;
  static Mount Make(RequestGenerator& g) {
    constexpr const char* kTypes[] = {"tmpfs", "tmpfs", "tmpfs", "tmpfs",    "tmpfs",
                                      "tmpfs", "tmpfs", "tmpfs", "nosuchfs", ""};
    return {Pick(g, kTypes), g.OneIn(2) ? "tmpfs" : "vol", g.OneIn(2) ? g.MountPoint() : g.Path(),
            g.TmpfsOptions()};
  }
};
template <>
struct RequestGenerator::Maker<BindMount> {
  static constexpr uint32_t kWeight = 8;
  static BindMount Make(RequestGenerator& g) {
    BindMount bind;
    bind.source = g.Path();
    bind.target = g.OneIn(2) ? g.MountPoint() : g.Path();
    bind.read_only = g.OneIn(3);
    bind.recursive = g.OneIn(4);
    bind.recursive_read_only = bind.recursive && g.OneIn(3);
    return bind;
  }
};
template <>
struct RequestGenerator::Maker<Remount> {
  static constexpr uint32_t kWeight = 4;
  static Remount Make(RequestGenerator& g) {
    Remount remount;
    remount.target = g.OneIn(2) ? g.MountPoint() : g.Path();
    do remount.options.push_back(Pick(g, kRemountWords));
    while (g.OneIn(3));
    return remount;
  }
};
template <>
struct RequestGenerator::Maker<Unmount> {
  static constexpr uint32_t kWeight = 6;
  static Unmount Make(RequestGenerator& g) {
    return {g.OneIn(2) ? g.MountPoint() : g.Path(), g.OneIn(60)};
  }
};
template <>
struct RequestGenerator::Maker<MakeShared> {
  static constexpr uint32_t kWeight = 3;
  static MakeShared Make(RequestGenerator& g) { return {g.OneIn(2) ? g.MountPoint() : g.Path()}; }
};
template <>
struct RequestGenerator::Maker<Stat> {
  static constexpr uint32_t kWeight = 3;
  static Stat Make(RequestGenerator& g) { return {g.Path(), g.OneIn(3), g.OneIn(3)}; }
};
template <>
struct RequestGenerator::Maker<StatFs> {
  static constexpr uint32_t kWeight = 2;
  static StatFs Make(RequestGenerator& g) { return {g.Path()}; }
};
template <>
struct RequestGenerator::Maker<Usage> {
  static constexpr uint32_t kWeight = 2;
  static Usage Make(RequestGenerator& g) { return {g.Path()}; }
};
template <>
struct RequestGenerator::Maker<ChangeOwnership> {
  static constexpr uint32_t kWeight = 4;
  static ChangeOwnership Make(RequestGenerator& g) {
    return {g.Path(), g.Gid(), g.OneIn(3), g.OneIn(3)};
  }
};
template <>
struct RequestGenerator::Maker<MakeDirectory> {
  static constexpr uint32_t kWeight = 6;
  static MakeDirectory Make(RequestGenerator& g) {
    MakeDirectory make;
    make.path = g.Path();
    make.mode = g.Mode();
    if (g.OneIn(2)) make.parent_mode = g.Mode();
    make.exact_mode = g.OneIn(2);
    return make;
  }
};
template <>
struct RequestGenerator::Maker<MakeFile> {
  static constexpr uint32_t kWeight = 3;
  static MakeFile Make(RequestGenerator& g) { return {g.Path(), g.Mode()}; }
};
template <>
struct RequestGenerator::Maker<RemoveDirectory> {
  static constexpr uint32_t kWeight = 3;
  static RemoveDirectory Make(RequestGenerator& g) { return {g.Path()}; }
};
template <>
struct RequestGenerator::Maker<RemoveFile> {
  static constexpr uint32_t kWeight = 3;
  static RemoveFile Make(RequestGenerator& g) { return {g.Path()}; }
};
template <>
struct RequestGenerator::Maker<RemoveTree> {
  static constexpr uint32_t kWeight = 4;
  static RemoveTree Make(RequestGenerator& g) { return {g.Path(), g.OneIn(4)}; }
};
template <>
struct RequestGenerator::Maker<ListDirectory> {
  static constexpr uint32_t kWeight = 2;
  static ListDirectory Make(RequestGenerator& g) { return {g.Path()}; }
};
template <>
struct RequestGenerator::Maker<ReadFile> {
  static constexpr uint32_t kWeight = 3;
  static ReadFile Make(RequestGenerator& g) {
    constexpr const char* kFiles[] = {"f", "a/f", "hard", "p/x", "p/d/x", "lf", "a/b/g"};
    if (g.OneIn(2)) return {g.Path()};
    return {{g.world_, Pick(g, kFiles), Resolve::kBeneath}};
  }
};
template <>
struct RequestGenerator::Maker<WriteAtomicPayload> {
  static constexpr uint32_t kWeight = 8;
  static WriteAtomicPayload Make(RequestGenerator& g) {
    WriteAtomicPayload write;
    write.target = g.OneIn(3) ? g.Path() : SafePath{g.world_, g.OneIn(2) ? "p" : "m"};
    while (!g.OneIn(3)) write.files.push_back(g.File());
    if (g.OneIn(3)) write.gid = g.Gid();
    return write;
  }
};

// There is no block device here: device_differential_test has some. What is none is refused alike.
template <>
struct RequestGenerator::Maker<ProbeDevice> {
  static constexpr uint32_t kWeight = 1;
  static ProbeDevice Make(RequestGenerator& g) { return {g.NoDevice(), g.OneIn(2), g.OneIn(2)}; }
};
template <>
struct RequestGenerator::Maker<FormatDevice> {
  static constexpr uint32_t kWeight = 1;
  static FormatDevice Make(RequestGenerator& g) {
    FormatDevice format;
    format.device = g.NoDevice();
    format.fs_type = g.OneIn(4) ? "vfat" : "ext4";
    format.fs_uuid = g.OneIn(4) ? "" : "5b8b1d3c-1111-4222-8333-0123456789ab";
    return format;
  }
};
template <>
struct RequestGenerator::Maker<CheckFilesystem> {
  static constexpr uint32_t kWeight = 1;
  static CheckFilesystem Make(RequestGenerator& g) {
    return {g.NoDevice(), {}, g.OneIn(4) ? "vfat" : "xfs", CheckMode::kReport};
  }
};

template <>
struct RequestGenerator::Maker<CheckDeviceUse> {
  static constexpr uint32_t kWeight = 1;
  static CheckDeviceUse Make(RequestGenerator& g) { return {g.NoDevice(), g.Below(2), 0}; }
};
// Nothing that would be started: until a child has its program it holds a copy of every descriptor
// of the other threads, whose mounts are busy meanwhile. The test has programs by themselves.
template <>
struct RequestGenerator::Maker<RunProgram> {
  static constexpr uint32_t kWeight = 1;
  static RunProgram Make(RequestGenerator& g) {
    if (g.OneIn(2)) return {{}};
    return {{"bin/true", "argument"}};
  }
};

template <>
struct RequestGenerator::Maker<IdentifyDevice> {
  static constexpr uint32_t kWeight = 1;
  static IdentifyDevice Make(RequestGenerator& g) { return {g.Path(), g.OneIn(2)}; }
};
template <>
struct RequestGenerator::Maker<DetachLoops> {
  static constexpr uint32_t kWeight = 1;
  static DetachLoops Make(RequestGenerator& g) { return {g.Path()}; }
};

template <>
struct RequestGenerator::Maker<MakeSymlink> {
  static constexpr uint32_t kWeight = 3;
  static MakeSymlink Make(RequestGenerator& g) {
    constexpr const char* kTargets[] = {"a", "a/b", "f", "no", "lself", "b"};
    return {g.Path(), g.OneIn(4) ? g.world_ + "/d" : Pick(g, kTargets)};
  }
};
template <>
struct RequestGenerator::Maker<ReadLink> {
  static constexpr uint32_t kWeight = 2;
  static ReadLink Make(RequestGenerator& g) {
    constexpr const char* kLinks[] = {"la", "lb", "a/lb", "lf", "lx", "lself"};
    if (g.OneIn(2)) return {g.Path()};
    return {{g.world_, Pick(g, kLinks)}};
  }
};

template <>
struct RequestGenerator::Maker<GrowFilesystem> {
  static constexpr uint32_t kWeight = 1;
  static GrowFilesystem Make(RequestGenerator& g) {
    GrowFilesystem grow{g.NoDevice(), {}, g.OneIn(4) ? "ext2" : "xfs"};
    if (g.OneIn(2)) grow.mounted_at = g.Path();
    grow.only_measure = g.OneIn(2);
    return grow;
  }
};

template <>
struct RequestGenerator::Maker<FlushDevice> {
  static constexpr uint32_t kWeight = 1;
  static FlushDevice Make(RequestGenerator& g) {
    FlushDevice flush{g.NoDevice()};
    if (g.OneIn(2)) flush.expected = DeviceIdentity{};
    return flush;
  }
};

template <>
struct RequestGenerator::Maker<WriteFile> {
  static constexpr uint32_t kWeight = 4;
  static WriteFile Make(RequestGenerator& g) {
    return {g.Path(), g.File().content, g.OneIn(3) ? g.Mode() : 0600, g.OneIn(2)};
  }
};
template <>
struct RequestGenerator::Maker<WriteAttribute> {
  static constexpr uint32_t kWeight = 3;
  static WriteAttribute Make(RequestGenerator& g) {
    constexpr const char* kFiles[] = {"f", "a/f", "hard", "p/x", "lf", "a/b/g"};
    SafePath path = g.Path();
    if (g.OneIn(2)) path = {g.world_, Pick(g, kFiles), Resolve::kBeneath};
    return {path, g.OneIn(2) ? "1" : "- - -"};
  }
};

template <>
struct RequestGenerator::Maker<IdentifyStorage> {
  static constexpr uint32_t kWeight = 4;
  static IdentifyStorage Make(RequestGenerator& g) {
    return {.path = g.Path(), .find_users = g.OneIn(2), .same_mount = g.OneIn(3)};
  }
};
template <>
struct RequestGenerator::Maker<MarkStorage> {
  static constexpr uint32_t kWeight = 4;
  static MarkStorage Make(RequestGenerator& g) {
    constexpr const char* kOwners[] = {"", "one", "two"};
    return {g.Path(), Pick(g, kOwners), Pick(g, kOwners), {}};
  }
};

// ---- images

// Never of a file that is there: a loop device would outlive the world. device_differential_test
// has some.
template <>
struct RequestGenerator::Maker<AttachLoop> {
  static constexpr uint32_t kWeight = 1;
  static AttachLoop Make(RequestGenerator& g) {
    constexpr uint32_t kBlocks[] = {4096, 4096, 512, 0, 1000, 8192};
    AttachLoop attach{g.Path(), {"ext4", "", 1, ""}};
    attach.read_only = g.OneIn(2);
    attach.block_size = Pick(g, kBlocks);
    return attach;
  }
};
template <>
struct RequestGenerator::Maker<ListLoops> {
  static constexpr uint32_t kWeight = 1;
  static ListLoops Make(RequestGenerator& g) { return {g.Path()}; }
};
template <>
struct RequestGenerator::Maker<ConfigureLoop> {
  static constexpr uint32_t kWeight = 1;
  static ConfigureLoop Make(RequestGenerator& g) {
    ConfigureLoop configure{g.NoDevice(), {}, g.OneIn(2)};
    if (g.OneIn(2)) configure.direct_io = g.OneIn(2);
    return configure;
  }
};
template <>
struct RequestGenerator::Maker<SetFileSize> {
  static constexpr uint32_t kWeight = 5;
  static SetFileSize Make(RequestGenerator& g) {
    constexpr int64_t kSizes[] = {1, 4096, 5000, 70000, 100000, 300000, 8 << 20, 0, -1};
    constexpr const char* kFiles[] = {"f", "a/f", "hard", "i", "d/i", "m/i", "a/b/g"};
    SetFileSize set{g.OneIn(2) ? g.Path() : SafePath{g.world_, Pick(g, kFiles)}};
    set.make = g.OneIn(2);
    if (g.OneIn(20)) set.expected = {"ext4", "", 1, ""};
    set.bytes = Pick(g, kSizes);
    set.allocate = g.OneIn(2);
    if (g.OneIn(3)) set.mode = g.Mode();
    return set;
  }
};
template <>
struct RequestGenerator::Maker<TakeFileLock> {
  static constexpr uint32_t kWeight = 3;
  static TakeFileLock Make(RequestGenerator& g) {
    constexpr const char* kContents[] = {"", "node one", "node two, process 7"};
    return {g.Path(), g.OneIn(30) ? std::string(5000, 'l') : Pick(g, kContents)};
  }
};

// ---- cuts. cut_frozen_test and image_differential_test have those that can succeed only on a
// disk.
template <>
struct RequestGenerator::Maker<CloneFile> {
  static constexpr uint32_t kWeight = 2;
  static CloneFile Make(RequestGenerator& g) {
    CloneFile clone{g.Path(), {}, g.Path()};
    if (g.OneIn(20)) clone.expected = {"ext4", "", 1, ""};
    return clone;
  }
};
template <>
struct RequestGenerator::Maker<CopyFile> {
  static constexpr uint32_t kWeight = 6;
  static CopyFile Make(RequestGenerator& g) {
    constexpr const char* kFiles[] = {"f", "a/f", "hard", "i", "a/b/g"};
    constexpr const char* kCopies[] = {"c1", "a/c2", "d/c3", "m/c4"};
    constexpr int64_t kOffsets[] = {0, 0, 0, 1, 4096, 100000, -1};
    CopyFile copy{g.OneIn(3) ? g.Path() : SafePath{g.world_, Pick(g, kFiles)},
                  {},
                  g.OneIn(3) ? g.Path() : SafePath{g.world_, Pick(g, kCopies)}};
    copy.from_offset = Pick(g, kOffsets);
    if (g.OneIn(20)) copy.bytes_per_second = -1;
    return copy;
  }
};
template <>
struct RequestGenerator::Maker<ListExtents> {
  static constexpr uint32_t kWeight = 1;
  static ListExtents Make(RequestGenerator& g) {
    return {g.Path(), {}, g.OneIn(5) ? -1 : 0, g.OneIn(5) ? 0u : 16u};
  }
};
// Never a filesystem that is there: its number is none that a world could have.
template <>
struct RequestGenerator::Maker<CutFrozen> {
  static constexpr uint32_t kWeight = 1;
  static CutFrozen Make(RequestGenerator& g) {
    CutFrozen cut;
    if (!g.OneIn(5)) cut.freeze = {{g.Path(), 4095, 1048575}};
    if (!g.OneIn(5)) cut.cuts = {{g.Path(), {}, g.Path()}};
    if (g.OneIn(5)) cut.longest_us = 0;
    return cut;
  }
};
template <>
struct RequestGenerator::Maker<ThawFilesystem> {
  static constexpr uint32_t kWeight = 1;
  static ThawFilesystem Make(RequestGenerator& g) { return {{g.Path(), 4095, 1048575}}; }
};
template <>
struct RequestGenerator::Maker<ChangeFilesystemUuid> {
  static constexpr uint32_t kWeight = 1;
  static ChangeFilesystemUuid Make(RequestGenerator& g) {
    constexpr const char* kTypes[] = {"ext4", "xfs", "btrfs", "tmpfs", ""};
    return {g.Path(), {}, Pick(g, kTypes), "old", g.OneIn(5) ? "" : "new"};
  }
};

// ---- trees with an account. tree_differential_test has those that can succeed only on a disk.
template <>
struct RequestGenerator::Maker<MakeSubvolume> {
  static constexpr uint32_t kWeight = 1;
  static MakeSubvolume Make(RequestGenerator& g) {
    MakeSubvolume make{g.Path()};
    if (g.OneIn(2)) make.of = g.Path();
    make.read_only = g.OneIn(3);
    return make;
  }
};
template <>
struct RequestGenerator::Maker<RemoveSubvolume> {
  static constexpr uint32_t kWeight = 1;
  static RemoveSubvolume Make(RequestGenerator& g) { return {g.Path()}; }
};
template <>
struct RequestGenerator::Maker<SetTreeQuota> {
  static constexpr uint32_t kWeight = 1;
  static SetTreeQuota Make(RequestGenerator& g) {
    SetTreeQuota set{g.Path()};
    set.project_id = g.OneIn(3) ? 0 : 7;
    set.bytes = g.OneIn(5) ? -1 : 4096;
    if (g.OneIn(20)) set.expected = {"ext4", "", 1, ""};
    return set;
  }
};
template <>
struct RequestGenerator::Maker<ReadTreeQuota> {
  static constexpr uint32_t kWeight = 1;
  static ReadTreeQuota Make(RequestGenerator& g) { return {g.Path()}; }
};

// ---- composites. They meet in few places, so that one finds what another has left.
template <>
struct RequestGenerator::Maker<RemoveVolume> {
  static constexpr uint32_t kWeight = 6;
  static RemoveVolume Make(RequestGenerator& g) {
    constexpr const char* kMarkers[] = {"v/one/ready", "v/two/ready", "v/f"};
    return {g.OneIn(3) ? g.Path() : g.MountPoint(), {g.world_, Pick(g, kMarkers)}};
  }
};
template <>
struct RequestGenerator::Maker<EnsureVolume> {
  static constexpr uint32_t kWeight = 10;
  static EnsureVolume Make(RequestGenerator& g) {
    const RemoveVolume place = Maker<RemoveVolume>::Make(g);
    EnsureVolume ensure{.target = place.target, .mode = g.Mode(), .marker = place.marker};
    if (g.OneIn(2)) ensure.tmpfs = g.TmpfsOptions();
    if (g.OneIn(3)) ensure.gid = g.Gid();
    if (g.OneIn(2)) {
      ensure.payload = VolumePayload{.files = {}, .is_refresh = g.OneIn(3)};
      while (!g.OneIn(3)) ensure.payload->files.push_back(g.File());
      if (g.OneIn(4)) ensure.payload->nested_mount_points.push_back(g.OneIn(3) ? "x" : "k/l");
    }
    return ensure;
  }
};
template <>
struct RequestGenerator::Maker<RemoveSubPaths> {
  static constexpr uint32_t kWeight = 4;
  static RemoveSubPaths Make(RequestGenerator& g) {
    const SafePath all = g.OneIn(6) ? g.Path() : SafePath{g.world_, "s"};
    return {all.Below(g.OneIn(2) ? "one" : "two"), all, g.OneIn(2)};
  }
};
template <>
struct RequestGenerator::Maker<PrepareSubPath> {
  static constexpr uint32_t kWeight = 8;
  static PrepareSubPath Make(RequestGenerator& g) {
    const RemoveSubPaths removal = Maker<RemoveSubPaths>::Make(g);
    const SafePath parent = removal.of_volume.Below(g.OneIn(2) ? "one" : "two");
    return {g.MountPoint(), g.Relative(), parent, parent.Below(g.OneIn(2) ? "0" : "1")};
  }
};
template <>
struct RequestGenerator::Maker<RemoveSkeleton> {
  static constexpr uint32_t kWeight = 4;
  static RemoveSkeleton Make(RequestGenerator& g) {
    constexpr const char* kNames[] = {"a", "b", "s", "f", "e", "k", "v", "x"};
    constexpr SkeletonPart::Kind kKinds[] = {SkeletonPart::Kind::kDirectories,
                                             SkeletonPart::Kind::kBinds, SkeletonPart::Kind::kTree,
                                             SkeletonPart::Kind::kFile};
    RemoveSkeleton remove{g.OneIn(2) ? g.Path() : SafePath{g.world_, g.OneIn(2) ? "a" : "d"}, {}};
    for (const char* name : kNames) {
      if (g.OneIn(3)) continue;
      SkeletonPart part{name, Pick(g, kKinds), static_cast<int>(g.Below(3))};
      if (g.OneIn(2)) part.leaf_files = {{"f", "g"}};
      remove.parts.push_back(std::move(part));
    }
    return remove;
  }
};
template <>
struct RequestGenerator::Maker<Batch> {
  static constexpr uint32_t kWeight = 6;
  static Batch Make(RequestGenerator& g) {
    Batch batch{{g.world_, ""}, {}};
    const size_t items = 1 + g.Below(4);
    while (batch.items.size() < items) {
      BatchItem item{g.Next()};
      const size_t before = batch.items.size();
      // Numbers of mounts differ between the worlds; a lock in an answer is held until the end.
      const bool comparable = !std::holds_alternative<ListMounts>(item.request) &&
                              !std::holds_alternative<TakeFileLock>(item.request);
      if (!comparable || (std::holds_alternative<Batch>(item.request) && !g.OneIn(20))) continue;
      if (before > 0 && g.OneIn(2)) item.needs.push_back(g.Below(static_cast<uint32_t>(before)));
      batch.items.push_back(std::move(item));
    }
    return batch;
  }
};

std::string RequestGenerator::NoDevice() {
  constexpr const char* kNames[] = {"f", "a", "la", "lf", "lself", "fifo", "sock", "no", "f/x"};
  return world_ + "/" + Pick(*this, kNames);
}

AnyRequest RequestGenerator::Next() {
  return [this]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    using Make = AnyRequest (*)(RequestGenerator&);
    static constexpr std::array<uint32_t, sizeof...(kIndex)> kWeights = {
        Maker<std::variant_alternative_t<kIndex, AnyRequest>>::kWeight...};
    static constexpr std::array<Make, sizeof...(kIndex)> kMakers = {
        [](RequestGenerator& g) -> AnyRequest {
          return Maker<std::variant_alternative_t<kIndex, AnyRequest>>::Make(g);
        }...};
    uint32_t total = 0;
    for (const uint32_t weight : kWeights) total += weight;
    uint32_t at = Below(total);
    size_t index = 0;
    while (at >= kWeights[index]) at -= kWeights[index++];
    return kMakers[index](*this);
  }
  (std::make_index_sequence<std::variant_size_v<AnyRequest>>());
}

// ---- text ---------------------------------------------------------------------------------------

namespace {

std::string PathText(const SafePath& path) {
  return "{" + path.root + " | " + path.relative +
         (path.resolve == Resolve::kBeneath ? " | beneath}" : "}");
}

std::string Octal(uint32_t mode) {
  std::string text;
  for (; mode != 0; mode /= 8) text.insert(text.begin(), static_cast<char>('0' + mode % 8));
  return "0" + text;
}

std::string FileText(const PayloadFile& file) {
  return " " + file.path + ":" + std::to_string(file.content.Reveal().size()) + ":" +
         Octal(file.mode) + (file.uid ? ":" + std::to_string(*file.uid) : "");
}

std::vector<PayloadFile> FilesOf(const std::optional<VolumePayload>& payload) {
  return payload ? payload->files : std::vector<PayloadFile>();
}

std::string PartText(const SkeletonPart& part) {
  return part.name + ":" + std::to_string(static_cast<int>(part.kind)) + ":" +
         std::to_string(part.levels) + (part.leaf_files ? ":files" : "");
}

}  // namespace

std::string RequestText(const AnyRequest& request) {
  return std::visit(
      [&request](const auto& r) {
        std::string text(RequestName(request));
        if constexpr (requires { r.source.root; }) text += " " + PathText(r.source);
        if constexpr (requires { r.fs_type; }) text += " " + r.fs_type;
        if constexpr (requires { r.path; }) text += " " + PathText(r.path);
        if constexpr (requires { r.below; }) text += " below " + r.below + " around " + r.around;
        if constexpr (requires { r.arguments; }) {
          for (const std::string& argument : r.arguments) text += " " + argument;
        }
        if constexpr (requires { r.target; }) text += " " + PathText(r.target);
        if constexpr (requires { r.marker; }) text += " marker " + PathText(r.marker);
        if constexpr (requires { r.tmpfs; }) text += r.tmpfs ? " tmpfs" : "";
        if constexpr (requires { r.sub_path; }) text += " " + PathText(r.volume) + " " + r.sub_path;
        if constexpr (requires { r.of_volume; }) text += " " + PathText(r.of_volume);
        if constexpr (requires { r.keep_directories; }) text += r.keep_directories ? " keep" : "";
        if constexpr (requires { r.payload; }) {
          if (r.payload && r.payload->is_refresh) text += " refresh";
          for (const PayloadFile& file : FilesOf(r.payload)) text += FileText(file);
        }
        if constexpr (requires { r.parts; }) {
          for (const SkeletonPart& part : r.parts) text += " " + PartText(part);
        }
        if constexpr (requires { r.items; }) {
          for (const BatchItem& item : r.items) text += "\n    " + RequestText(item.request);
        }
        if constexpr (requires { r.options; }) {
          for (const std::string& option : r.options) text += " " + option;
        }
        if constexpr (requires { r.recursive; }) {
          text += std::string(r.read_only ? " ro" : "") + (r.recursive ? " recursive" : "") +
                  (r.recursive_read_only ? " recursive-ro" : "");
        }
        if constexpr (requires { r.leads_to; }) text += " -> " + r.leads_to;
        if constexpr (requires { r.allocate; }) {
          text += " to " + std::to_string(r.bytes) + (r.make ? " make" : "") +
                  (r.allocate ? " allocate" : "");
        }
        if constexpr (requires { r.pin; }) text += r.pin ? " pin" : "";
        if constexpr (requires { r.force; }) text += r.force ? " force" : "";
        if constexpr (requires { r.follow; }) {
          text += std::string(r.follow ? " follow" : "") + (r.only_mount_point ? " point" : "");
        }
        if constexpr (requires { r.device; }) text += " " + r.device;
        if constexpr (requires { Octal(r.mode); }) text += " " + Octal(r.mode);
        if constexpr (requires { r.exact_mode; }) {
          text += std::string(r.exact_mode ? " exact" : "") +
                  (r.parent_mode ? " parents " + Octal(*r.parent_mode) : "");
        }
        if constexpr (requires { r.on_root_mismatch; }) {
          text += " gid " + std::to_string(r.gid) + (r.read_only ? " ro" : "") +
                  (r.on_root_mismatch ? " on-mismatch" : "");
        }
        if constexpr (requires { r.files; }) {
          for (const PayloadFile& file : r.files) text += FileText(file);
          if (r.gid) text += " gid " + std::to_string(*r.gid);
        }
        return text;
      },
      request);
}

}  // namespace volumed
