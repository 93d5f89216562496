// The same requests for clones and copies of files, and for where their bytes lie, to LocalKernel
// and to FakeKernel: equal answers, errors and outcomes. An ext4 cannot share blocks, an xfs can.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "integration/mounter/image_world.h"

namespace volumed {
namespace {

// Without the blocks: the fake does not know what a loop device writes.
template <typename Request>
void StepOfSize(ImageWorld& world, const std::string& name, const Request& request) {
  const Result<FileExtent> done = world.kernel.Call(request, {});
  const std::string text = done.ok() ? std::to_string(done->size_bytes) + " bytes" +
                                           (done->changed ? " changed" : " unchanged")
                                     : ResultText(done.error(), "");
  world.text += name + ": " + text + "\n";
}

void MakeFilledImage(ImageWorld& world, const std::string& type) {
  world.Step("make", world.Size(kImageBytes, true));
  world.Step("attach", world.Attach());
  world.Step("format",
             FormatDevice{world.Loop().path, world.Probed(), type, ImageUuid(), {}, false, false});
  world.MountIt(type);
  world.Step("write", WriteFile{world.place.Below("f"), Secret<std::string>("kept")});
  world.Step("unmount", Unmount{world.place});
  world.Step("detach", DetachLoops{world.Image()});
  world.AwaitNoLoops();
}

void ReadWhatIsOn(ImageWorld& world, const std::string& name, const std::string& type) {
  const SafePath file = world.pool.Below(name);
  const auto loop = world.kernel.Call(AttachLoop{file}, {});
  if (!loop.ok()) {
    world.text += "attach " + name + ": " + ResultText(loop.error(), "") + "\n";
    return;
  }
  const auto probe = world.kernel.Call(ProbeDevice{loop->device.path, false, false}, {});
  if (probe.ok()) {
    world.text += name + " is " + probe->identity.uuid + "\n";
    world.Step("mount", Mount{type, loop->device.path, world.place, {}, probe->identity});
  }
  world.Step("read " + name, ReadFile{world.place.Below("f")});
  world.Step("unmount", Unmount{world.place});
  world.Step("detach", DetachLoops{file});
  world.AwaitNoLoops();
}

void CloneImage(ImageWorld& world, const std::string& type) {
  const SafePath image = world.Image();
  const SafePath clone = world.pool.Below("clone");
  const SafePath other = world.pool.Below("other");
  world.Step("clone nothing", CloneFile{world.pool.Below("none"), {}, clone});
  world.Step("clone a directory", CloneFile{world.pool.Below("d"), {}, clone});
  world.Step("clone another", CloneFile{image, {"tmpfs", "", 1, ""}, clone});
  world.Step("clone as itself", CloneFile{image, {}, image});
  world.Step("clone over a directory", CloneFile{image, {}, world.pool.Below("d")});
  world.Step("clone into nothing", CloneFile{image, {}, world.pool.Below("none/clone")});
  world.Step("another file", WriteFile{other, Secret<std::string>("mine")});
  world.Step("clone over it", CloneFile{image, {}, other});
  world.Step("as it was", ReadFile{other});
  world.Step("clone across filesystems", CloneFile{image, {}, world.place.Below("clone")});
  world.Step("not made", RemoveFile{world.place.Below("clone")});
  StepOfSize(world, "clone", CloneFile{image, {}, clone});
  StepOfSize(world, "clone again", CloneFile{image, {}, clone});
  world.Step("clone another as it", CloneFile{other, {}, clone});
  ReadWhatIsOn(world, "clone", type);
  world.Step("remove it", RemoveFile{clone});
}

void CopyImage(ImageWorld& world, const std::string& type) {
  const SafePath image = world.Image();
  const SafePath copy = world.pool.Below("copy");
  const SafePath other = world.pool.Below("other");
  const auto from = [&](int64_t offset) { return CopyFile{image, {}, copy, offset}; };
  world.Step("copy nothing", CopyFile{world.pool.Below("none"), {}, copy});
  world.Step("copy as itself", CopyFile{image, {}, image});
  world.Step("copy over another", CopyFile{image, {}, other});
  world.Step("no such rate", CopyFile{image, {}, copy, 0, -1});
  world.Step("no such offset", from(-1));
  world.Step("go on with nothing", from(4096));
  StepOfSize(world, "copy", from(0));
  world.Step("behind the end", from(kImageBytes + 1));
  world.Step("go on with another", CopyFile{image, {}, other, 1});
  StepOfSize(world, "go on", from(kImageBytes / 2));
  StepOfSize(world, "nothing is left", from(kImageBytes));
  ReadWhatIsOn(world, "copy", type);
  StepOfSize(world, "once more", from(0));
  ReadWhatIsOn(world, "copy", type);
  StepOfSize(world, "across filesystems", CopyFile{other, {}, world.place.Below("copy")});
  world.Step("read it", ReadFile{world.place.Below("copy")});
  world.Step("remove it", RemoveFile{world.place.Below("copy")});
}

// Bytes of the first list that the second one has not at the same place.
int64_t BytesElsewhere(const ExtentList& list, const ExtentList& other) {
  int64_t bytes = 0;
  for (const FileExtentRun& run : list.runs) {
    bytes += run.bytes;
    for (const FileExtentRun& there : other.runs) {
      if (there.physical - there.logical != run.physical - run.logical) continue;
      const int64_t begin = std::max(run.logical, there.logical);
      const int64_t end = std::min(run.logical + run.bytes, there.logical + there.bytes);
      bytes -= std::max<int64_t>(0, end - begin);
    }
  }
  return bytes;
}

using WriteBytes = std::function<void(int64_t offset, int64_t bytes)>;

void ListBytes(ImageWorld& world, const WriteBytes& write) {
  const SafePath file = world.pool.Below("file");
  const SafePath clone = world.pool.Below("clone");
  world.Step("list nothing", ListExtents{file});
  world.Step("list a directory", ListExtents{world.pool.Below("d")});
  world.Step("make", MakeFile{file});
  world.Step("list another", ListExtents{file, {"tmpfs", "", 1, ""}});
  world.Step("no such offset", ListExtents{file, {}, -1});
  world.Step("none at a time", ListExtents{file, {}, 0, 0});
  world.Step("too many at a time", ListExtents{file, {}, 0, 65537});
  world.Step("nothing is there", ListExtents{file});
  write(0, 1 << 20);
  world.Step("list", ListExtents{file});
  world.Step("behind the end", ListExtents{file, {}, 1 << 30});
  StepOfSize(world, "clone", CloneFile{file, {}, clone});
  const auto before = world.kernel.Call(ListExtents{file}, {});
  write(8192, 5000);
  const auto after = world.kernel.Call(ListExtents{file}, {});
  const auto cloned = world.kernel.Call(ListExtents{clone}, {});
  if (!before.ok() || !after.ok() || !cloned.ok()) return;
  world.text += "before: " + std::to_string(BytesElsewhere(*before, *cloned)) +
                " after: " + std::to_string(BytesElsewhere(*after, *cloned)) + "\n";
  world.Step("one at a time", ListExtents{file, {}, 8192, 1});
}

class CopyDifferential : public ImageDifferential {
 protected:
  void TearDown() override {
    if (local_ != nullptr) {
      ::umount2(Path("mnt2").c_str(), 0);
      for (const char* name : {"clone", "copy"}) {
        (void)local_->Call(DetachLoops{real().pool.Below(name)}, {});
      }
    }
    ImageDifferential::TearDown();
  }
  static bool SharesBlocks() { return std::string(GetParam()) == "xfs"; }
};

TEST_P(CopyDifferential, ACloneOfAnImage) {
  const auto life = [](ImageWorld world) {
    MakeFilledImage(world, GetParam());
    CloneImage(world, GetParam());
    return world.text;
  };
  const std::string happened = life(real());
  EXPECT_EQ(life(fake()), happened);
  EXPECT_THAT(happened, ::testing::HasSubstr("\nas it was: content mine\n"));
  EXPECT_THAT(happened,
              ::testing::HasSubstr(SharesBlocks() ? "\nread clone: content kept\n"
                                                  : "\nclone: Unimplemented (not applied, "));
}

TEST_P(CopyDifferential, ACopyOfAnImage) {
  const auto life = [](ImageWorld world) {
    MakeFilledImage(world, GetParam());
    world.Step("another file", WriteFile{world.pool.Below("other"), Secret<std::string>("mine")});
    CopyImage(world, GetParam());
    return world.text;
  };
  const std::string happened = life(real());
  EXPECT_EQ(life(fake()), happened);
  EXPECT_THAT(happened, ::testing::HasSubstr("\nread copy: content kept\n"));
  EXPECT_THAT(happened, ::testing::HasSubstr("\nread it: content mine\n"));
}

TEST_P(CopyDifferential, WhereTheBytesOfAFileLie) {
  ImageWorld there = real();
  ListBytes(there, [this](int64_t offset, int64_t bytes) {
    const Descriptor file(::open(Path("mnt/file").c_str(), O_WRONLY | O_CLOEXEC));
    const std::string content(static_cast<size_t>(bytes), 'x');
    EXPECT_EQ(::pwrite(file.get(), content.data(), content.size(), offset), bytes);
  });
  ImageWorld here = fake();
  ListBytes(here, [this](int64_t offset, int64_t bytes) {
    fake_kernel_.WriteBlocks("/scratch/mnt/file", offset, bytes);
  });
  EXPECT_EQ(here.text, there.text);
  // The two blocks of the 5,000 bytes that were written after the clone, and no others.
  if (SharesBlocks()) {
    EXPECT_THAT(there.text, ::testing::HasSubstr("\nbefore: 0 after: 8192\n"));
  }
}

INSTANTIATE_TEST_SUITE_P(Filesystems, CopyDifferential, ::testing::Values("ext4", "xfs"),
                         [](const auto& type) { return std::string(type.param); });

}  // namespace
}  // namespace volumed
