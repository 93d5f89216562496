// Random damaged and foreign images: nothing that is not blank in a probed region is formatted, and
// not one byte of it is written. Of what is blank there, everything that a format did was allowed.
//
// VOLUMED_IMAGES sets how many (100), VOLUMED_SEED repeats a run.
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>

#include "base/random.h"
#include "integration/mounter/block_mount_fixture.h"
#include "os/blank_regions.h"
#include "run_numbers.h"

namespace volumed {
namespace {

using Random = std::mt19937_64;

uint64_t Below(Random& random, uint64_t limit) { return random() % limit; }

std::string RandomText(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(1 + Below(random, 255));
  return bytes;
}

// An image under construction. Sparse: what is not written reads as zero.
class DiskImage {
 public:
  DiskImage(std::string path, int64_t size) : path_(std::move(path)), size_(size) {
    EXPECT_TRUE(MakeImage(path_, size));
  }
  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  void Write(int64_t offset, const std::string& bytes) {
    if (offset < 0 || offset >= size_) return;
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file << bytes.substr(0, static_cast<size_t>(std::min<int64_t>(
                                size_ - offset, static_cast<int64_t>(bytes.size()))));
    EXPECT_TRUE(file.good());
  }

 private:
  const std::string path_;
  const int64_t size_;
};

std::string Little(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xFF);
  return text;
}

// ---- signatures, by writers of our own. Offsets and magics: the formats' own documents, as
// libblkid's superblock probers name them.

void Mbr(DiskImage& image, Random& random) {
  image.Write(446, std::string("\0\x20\x21\0\x83\xFE\xFF\xFF", 8) + Little(2048, 4) +
                       Little(1 + Below(random, 100000), 4));
  image.Write(510, "\x55\xAA");
}
void Gpt(DiskImage& image, Random& random) {
  const std::string header =
      "EFI PART" + Little(0x00010000, 4) + Little(92, 4) + RandomText(random, 76);
  if (Below(random, 3) != 0) image.Write(512, header);
  image.Write(image.size() - 512, header);
}
void Lvm(DiskImage& image, Random& random) {
  image.Write(
      512 * static_cast<int64_t>(Below(random, 4)),
      "LABELONE" + Little(1, 8) + RandomText(random, 8) + "LVM2 001" + RandomText(random, 32));
}
void Md(DiskImage& image, Random& random) {
  const std::string magic = "\xFC\x4E\x2B\xA9";
  const std::array<int64_t, 4> places = {0, 4096, (image.size() - 8192) / 4096 * 4096,
                                         image.size() / 65536 * 65536 - 65536};
  image.Write(places[Below(random, places.size())], magic + Little(1, 4) + RandomText(random, 200));
}
void Zfs(DiskImage& image, Random& random) {
  const int64_t label = 256 * 1024;
  const int64_t end = image.size() / label * label;
  const std::array<int64_t, 4> labels = {0, label, end - 2 * label, end - label};
  const int64_t at = labels[Below(random, labels.size())] + 128 * 1024;
  for (int64_t i = 0; i < 8; ++i) {
    image.Write(at + i * 1024,
                Little(0x00bab10c, 8) + Little(5000, 8) + Little(4 + Below(random, 99), 8));
  }
}
void Luks(DiskImage& image, Random& random) {
  const bool second = Below(random, 2) == 0;
  // LUKS2 keeps a second header; the first may be lost.
  image.Write(second ? int64_t{0x4000} << Below(random, 9) : 0,
              std::string(second ? "SKUL\xBA\xBE" : "LUKS\xBA\xBE", 6) + std::string("\0\x02", 2) +
                  RandomText(random, 100));
}
void Swap(DiskImage& image, Random& random) {
  image.Write(4096 - 10, "SWAPSPACE2");
  image.Write(1024, Little(1, 4) + Little(1000, 4) + std::string(4, '\0') + RandomText(random, 16));
}
void Bcache(DiskImage& image, Random& random) {
  image.Write(4096, RandomText(random, 24) + "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf7\x7a");
}
void F2fs(DiskImage& image, Random& random) {
  image.Write(1024 + 4096 * static_cast<int64_t>(Below(random, 2)),
              Little(0xF2F52010, 4) + RandomText(random, 100));
}
void Ntfs(DiskImage& image, Random& random) {
  const std::array<int64_t, 3> places = {0, image.size() / 2 / 512 * 512, image.size() - 512};
  image.Write(places[Below(random, places.size())],
              "\xEB\x52\x90NTFS    " + RandomText(random, 70));
}
void Iso9660(DiskImage& image, Random& random) {
  image.Write(32768,
              "\x01"
              "CD001\x01" +
                  RandomText(random, 60));
}
void Drbd(DiskImage& image, Random& random) {
  image.Write(image.size() - 4096 + 0x3C, std::string("\x83\x74\x02\x6d", 4));
  image.Write(image.size() - 4096, RandomText(random, 24));
}
void BtrfsMirror(DiskImage& image, Random& random) {
  image.Write(64 << 20, RandomText(random, 64) + "_BHRfS_M" + RandomText(random, 200));
}
void ExtBackup(DiskImage& image, Random& random) {
  const std::array<int64_t, 4> places = {(8 << 20) + 1024, (24 << 20) + 1024, 32 << 20, 128 << 20};
  image.Write(places[Below(random, places.size())],
              RandomText(random, 56) + "\x53\xEF" + RandomText(random, 100));
}
void XfsSecondary(DiskImage& image, Random& random) {
  image.Write(image.size() / 4 * static_cast<int64_t>(1 + Below(random, 3)) / 4096 * 4096,
              "XFSB" + RandomText(random, 100));
}
// One bad byte, somewhere that is read.
void RandomByte(DiskImage& image, Random& random) {
  const auto regions = BlankRegions(static_cast<uint64_t>(image.size()), false);
  const BlankRegion& region = regions[Below(random, regions.size())];
  image.Write(static_cast<int64_t>(region.offset + Below(random, region.length)),
              RandomText(random, 1));
}
void RandomNoise(DiskImage& image, Random& random) {
  const auto regions = BlankRegions(static_cast<uint64_t>(image.size()), false);
  const BlankRegion& region = regions[Below(random, regions.size())];
  image.Write(static_cast<int64_t>(region.offset), RandomText(random, 1 + Below(random, 9000)));
}
// A filesystem of another's making that lost its head, or all but its tail.
void Beheaded(DiskImage& image, Random& random) {
  const std::array<const char*, 4> types = {"ext4 -F -q", "ext2 -F -q -b 1024", "btrfs -f -q -K",
                                            "xfs -f -q -K"};
  const char* type = types[Below(random, image.size() >= kImageBytes ? 4 : 2)];
  ASSERT_EQ(
      std::system(("mkfs." + std::string(type) + " " + image.path() + " >/dev/null 2>&1").c_str()),
      0)
      << type;
  image.Write(0, std::string(512 + Below(random, 128 * 1024), '\0'));
}
void Scratched(DiskImage& image, Random& random) {
  const std::array<const char*, 3> types = {"ext4 -F -q", "ext3 -F -q", "ext2 -F -q"};
  const char* type = types[Below(random, types.size())];
  ASSERT_EQ(
      std::system(("mkfs." + std::string(type) + " " + image.path() + " >/dev/null 2>&1").c_str()),
      0);
  for (uint64_t i = 0; i < 1 + Below(random, 8); ++i) {
    image.Write(static_cast<int64_t>(Below(random, 64 * 1024)), RandomText(random, 64));
  }
}
void Nothing(DiskImage&, Random&) {}

struct Kind {
  const char* name;
  void (*write)(DiskImage& image, Random& random);
};
constexpr std::array<Kind, 20> kKinds = {{{"mbr", &Mbr},
                                          {"gpt", &Gpt},
                                          {"lvm", &Lvm},
                                          {"md", &Md},
                                          {"zfs", &Zfs},
                                          {"luks", &Luks},
                                          {"swap", &Swap},
                                          {"bcache", &Bcache},
                                          {"f2fs", &F2fs},
                                          {"ntfs", &Ntfs},
                                          {"iso9660", &Iso9660},
                                          {"drbd", &Drbd},
                                          {"btrfs mirror", &BtrfsMirror},
                                          {"ext backup", &ExtBackup},
                                          {"xfs secondary", &XfsSecondary},
                                          {"random byte", &RandomByte},
                                          {"random noise", &RandomNoise},
                                          {"beheaded", &Beheaded},
                                          {"scratched", &Scratched},
                                          {"nothing", &Nothing}}};

constexpr int64_t kBlock = 4096;
using Blocks = std::map<int64_t, std::string>;

// Every block of the image that is not zero. Holes are passed over.
Blocks NonZeroBlocks(const DiskImage& image) {
  Blocks blocks;
  const Descriptor file(::open(image.path().c_str(), O_RDONLY | O_CLOEXEC));
  const std::string zeros(kBlock, '\0');
  int64_t at = 0;
  while ((at = ::lseek(file.get(), at, SEEK_DATA)) >= 0) {
    const int64_t hole = ::lseek(file.get(), at, SEEK_HOLE);
    for (at = at / kBlock * kBlock; at < hole; at += kBlock) {
      std::string block(kBlock, '\0');
      const ssize_t size = ::pread(file.get(), block.data(), block.size(), at);
      if (size > 0 && block != zeros) blocks[at] = block;
    }
  }
  return blocks;
}

// Without any of the code under test but the table, whose borders are blocks.
bool TouchesRegions(const DiskImage& image, const Blocks& blocks) {
  for (const BlankRegion& region : BlankRegions(static_cast<uint64_t>(image.size()), false)) {
    const auto next = blocks.lower_bound(static_cast<int64_t>(region.offset));
    if (next != blocks.end() && next->first < static_cast<int64_t>(region.offset + region.length)) {
      return true;
    }
  }
  return false;
}

class ForeignImages : public BlockMountTest {
 protected:
  // A policy, a type, and sometimes a stale record: of an unfinished format of another disk.
  SafeMountRequest RandomRequest(const LoopDevice& device, Random& random) {
    const std::array<const char*, 5> types = {"ext2", "ext3", "ext4", "xfs", "btrfs"};
    SafeMountRequest request = Request(device, types[Below(random, types.size())]);
    request.key = "image " + std::to_string(random());
    request.format_policy = Below(random, 4) == 0 ? FormatPolicy::kFullScan : FormatPolicy::kBlank;
    if (Below(random, 4) == 0) {
      FormatIntent stale;
      stale.device.size_bytes = kImageBytes;
      stale.device.stable_id = "serial:of another disk";
      stale.fs_type = request.fs_type;
      stale.fs_uuid = NewUuid();
      EXPECT_TRUE(intents_.Begin(request.key, stale).ok());
    }
    return request;
  }
};

TEST_F(ForeignImages, NoneIsFormattedThatIsNotBlankInAProbedRegion) {
  const uint64_t count = NumberOfRun("VOLUMED_IMAGES", 100);
  const uint64_t seed = NumberOfRun("VOLUMED_SEED", 1165684726);
  std::printf("VOLUMED_SEED=%llu\n", static_cast<unsigned long long>(seed));
  Random random(seed);
  int formatted = 0;
  int blank = 0;
  for (uint64_t i = 0; i < count && !HasFailure(); ++i) {
    // Every kind comes in turn; the sizes have odd ends, and some are smaller than the regions.
    const Kind& kind = kKinds[i % kKinds.size()];
    const std::array<int64_t, 3> sizes = {kImageBytes, int64_t{20} << 20, int64_t{150} << 20};
    const int64_t size =
        sizes[Below(random, sizes.size())] + 512 * static_cast<int64_t>(Below(random, 5000));
    SCOPED_TRACE(std::string(kind.name) + ", image " + std::to_string(i));
    DiskImage image(Path("image"), size);
    kind.write(image, random);
    const Blocks before = NonZeroBlocks(image);
    const bool is_zero = !TouchesRegions(image, before);
    const int formats_before = kernel_->formats();
    {
      const LoopDevice device(image.path());
      ASSERT_TRUE(device.valid());
      SafeMountRequest request = RandomRequest(device, random);
      request.fsck_policy = FsckPolicy::kNever;  // what is mounted or mended is written to
      request.target = {scratch(), "no-such-place"};
      const SafeMountReport report = Run(request);
      EXPECT_FALSE(report.status.ok());  // for want of a place to mount it
      const bool began = kernel_->formats() != formats_before;
      EXPECT_TRUE(is_zero || !began) << Text(report);
      EXPECT_FALSE(report.formatted && !is_zero);
      formatted += report.formatted ? 1 : 0;
      blank += is_zero ? 1 : 0;
    }
    if (!is_zero) {
      EXPECT_TRUE(NonZeroBlocks(image) == before) << "the image was written to";
    }
  }
  std::printf("%llu images, %d blank in every region, %d formatted, %lld bytes read to prove it\n",
              static_cast<unsigned long long>(count), blank, formatted,
              static_cast<long long>(kernel_->bytes_read()));
  // The test would say nothing if nothing could ever be formatted.
  EXPECT_GT(formatted, 0);
}

}  // namespace
}  // namespace volumed
