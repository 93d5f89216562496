// Properties of PublishedMac and MayBeInPlace over random volumes and rows.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/manual_clock.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "metrics/exported_families.h"
#include "operation/published_content.h"
#include "unit/operation/stub_host.h"

namespace volumed {
namespace {

struct Publication {
  EnsureVolume volume;
  std::vector<PrepareSubPath> sub_paths;
};

// Texts of two letters, so that what stands behind one another is often the same text.
class RandomPublications {
 public:
  explicit RandomPublications(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t limit) { return random_() % limit; }
  bool OneIn(uint64_t times) { return Below(times) == 0; }
  std::string Text() {
    std::string text;
    for (uint64_t left = Below(4); left > 0; --left) text += static_cast<char>('a' + Below(2));
    return text;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (uint64_t left = Below(3); left > 0; --left) texts.push_back(Text());
    return texts;
  }
  SafePath Path() { return {Text(), Text(), OneIn(2) ? Resolve::kNoSymlinks : Resolve::kBeneath}; }
  std::optional<uint32_t> Number() {
    return OneIn(2) ? std::nullopt : std::optional(static_cast<uint32_t>(Below(2)));
  }
  PayloadFile File() {
    return {.path = Text(),
            .content = Secret<std::string>(Text()),
            .mode = static_cast<uint32_t>(Below(2)),
            .uid = Number()};
  }

  Publication Next() {
    Publication made;
    made.volume.target = Path();
    made.volume.mode = static_cast<uint32_t>(Below(2));
    made.volume.parent_mode = static_cast<uint32_t>(Below(2));
    if (OneIn(2)) made.volume.tmpfs = Texts();
    made.volume.marker = Path();
    made.volume.gid = Number();
    if (!OneIn(3)) {
      VolumePayload payload;
      for (uint64_t left = Below(3); left > 0; --left) payload.files.push_back(File());
      payload.nested_mount_points = Texts();
      made.volume.payload = payload;
    }
    for (uint64_t left = Below(3); left > 0; --left) {
      made.sub_paths.push_back({Path(), Text(), Path(), Path()});
    }
    return made;
  }

 private:
  std::mt19937_64 random_;
};

std::string Shown(const std::string& text) { return std::to_string(text.size()) + ":" + text; }
std::string Shown(const SafePath& path) {
  return Shown(path.root) + Shown(path.relative) + std::to_string(static_cast<int>(path.resolve));
}
std::string Shown(const std::optional<uint32_t>& number) {
  return number ? std::to_string(*number) : "-";
}
std::string Shown(const std::vector<std::string>& texts) {
  std::string all = std::to_string(texts.size()) + "[";
  for (const std::string& text : texts) all += Shown(text);
  return all + "]";
}

// Two publications are the same if and only if these texts are.
std::string Shown(const Publication& made) {
  const EnsureVolume& volume = made.volume;
  std::string all = Shown(volume.target) + " " + std::to_string(volume.mode) + " " +
                    std::to_string(volume.parent_mode) + " " +
                    (volume.tmpfs ? Shown(*volume.tmpfs) : "-") + Shown(volume.marker) +
                    Shown(volume.gid);
  if (volume.payload) {
    all += " payload " + std::to_string(volume.payload->files.size());
    for (const PayloadFile& file : volume.payload->files) {
      all += Shown(file.path) + Shown(file.content.Reveal()) + std::to_string(file.mode) +
             Shown(file.uid);
    }
    all += Shown(volume.payload->nested_mount_points);
  }
  for (const PrepareSubPath& one : made.sub_paths) {
    all +=
        " sub " + Shown(one.volume) + Shown(one.sub_path) + Shown(one.parent) + Shown(one.target);
  }
  return all;
}

class PublishedContentRandom : public ::testing::Test {
 protected:
  PublishedContentRandom() {
    host_.content_key = std::make_shared<ContentKey>(Secret<std::string>(std::string(32, 'k')));
  }
  std::string MacOf(const Publication& made) {
    return PublishedMac(host_, made.volume, made.sub_paths);
  }

  ManualClock clock_;
  FakeKernel kernel_;
  StubHostParts parts_;
  KubeletPaths paths_{"/r"};
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  VolumeHost host_{paths_, kernel_, clock_,    parts_,       parts_,
                   parts_, parts_,  families_, irreversible_};
};

TEST_F(PublishedContentRandom, TwoMacsAreTheSameIfAndOnlyIfAllThatIsPublishedIs) {
  RandomPublications random(1);
  std::map<std::string, std::string> of_mac;
  for (int i = 0; i < 10'000; ++i) {
    const Publication made = random.Next();
    const std::string mac = MacOf(made);
    ASSERT_EQ(mac.size(), 32u);
    ASSERT_EQ(mac, MacOf(made)) << "it is a function";
    const auto [known, is_new] = of_mac.emplace(mac, Shown(made));
    ASSERT_EQ(known->second, Shown(made)) << "a change that a restart would not see";
  }
  EXPECT_GT(of_mac.size(), 5'000u);
}

TEST_F(PublishedContentRandom, RootIsNotNobody) {
  RandomPublications random(4);
  Publication made = random.Next();
  made.volume.payload.emplace().files.push_back(random.File());
  std::optional<uint32_t>& owner = made.volume.payload->files.back().uid;
  for (std::optional<uint32_t>* number : {&made.volume.gid, &owner}) {
    number->reset();
    const std::string nobody = MacOf(made);
    *number = 0;
    EXPECT_NE(MacOf(made), nobody);
  }
}

// A token is another one each time, and its volume the same.
TEST_F(PublishedContentRandom, IssuedContentCountsByItsIssuerAlone) {
  RandomPublications random(2);
  for (int i = 0; i < 2'000; ++i) {
    Publication made = random.Next();
    if (!made.volume.payload) made.volume.payload.emplace();
    PayloadFile token = random.File();
    made.volume.payload->files.push_back(token);
    const std::string as_content = MacOf(made);
    PayloadFile& last = made.volume.payload->files.back();
    last.issued = true;
    const std::string issued = MacOf(made);
    ASSERT_NE(issued, as_content);
    last.content = Secret<std::string>("another token");
    ASSERT_EQ(MacOf(made), issued);
    made.volume.payload->is_refresh = true;
    ASSERT_EQ(MacOf(made), issued) << "how it is made is not what it is";
  }
}

// A row of a volume that may be in its place, and each thing that speaks against it.
TEST_F(PublishedContentRandom, OneThingThatSpeaksAgainstItIsEnough) {
  RandomPublications random(3);
  for (int i = 0; i < 5'000; ++i) {
    MountRequest request{.target = {},
                         .spec = VolumeSpec::FromVolume({"data", EmptyDirVolumeSource{}}),
                         .sub_paths = {},
                         .nested_mount_points = {}};
    PodVolumeRecord record;
    request.found_as = record.published.fs_type = random.OneIn(2) ? "tmpfs" : "";
    record.state = VolumeState::kSetUp;
    record.published.mac = "mac";
    const int64_t now = clock_.WallUnixMillis();
    if (random.OneIn(2)) {
      record.published.tokens = {now - static_cast<int64_t>(random.Below(3)),
                                 now + 1 + static_cast<int64_t>(random.Below(3))};
    }
    for (uint64_t left = random.Below(3); left > 0; --left) {
      const std::string container = random.Text();
      record.sub_paths.push_back({container, static_cast<int>(left)});
      request.sub_paths.push_back({container, static_cast<int>(left), "x"});
    }
    ASSERT_TRUE(MayBeInPlace(request, record, clock_));
    ASSERT_FALSE(MayBeInPlace(request, std::nullopt, clock_));
    switch (random.Below(9)) {
      case 0:
        request.found_as.reset();
        break;
      case 1:
        request.found_as = "ext4";
        break;
      case 2:
        record.state = VolumeState::kSettingUp;
        break;
      case 3:
        record.uncertain = true;
        break;
      case 4:
        record.published.mac.clear();
        break;
      case 5:
        record.published.tokens = {now + 1, now + 2};
        break;
      case 6:
        record.published.tokens = {now - 1, now};
        break;
      case 7:
        request.sub_paths.push_back({"more", 0, "x"});
        break;
      case 8:
        record.sub_paths.push_back({"more", 0});
        break;
    }
    ASSERT_FALSE(MayBeInPlace(request, record, clock_)) << i;
  }
}

}  // namespace
}  // namespace volumed
