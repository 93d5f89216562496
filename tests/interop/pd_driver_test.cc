// volumed with a CSI driver of the field: claims and pods on the real daemon, whose volumes the
// persistent disk driver makes, attaches, stages, publishes and grows; and while it, or the agent,
// is away between two calls. Those that die in the middle of one: pd_crash_test.cc.
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <vector>

#include "interop/pd_driver_fixture.h"

namespace volumed::pd_driver_test {
namespace {

TEST_F(PdDriverTest, AStaticVolumeIsAttachedStagedPublishedAndTakenAwayInThisOrderOnceEach) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "disk"));
  const std::string place = PlaceOf("a", "disk");
  struct stat stat {};
  ASSERT_EQ(::stat(place.c_str(), &stat), 0);
  EXPECT_EQ(stat.st_gid, kGroup);
  EXPECT_EQ(stat.st_mode & 02070u, 02070u);
  EXPECT_EQ(MountsBelow(place).size(), 1u);
  WriteText(place + "/kept.txt", "kept");
  EXPECT_TRUE(Exists(root() + "/pods/uid-a/volumes/kubernetes.io~csi/disk/vol_data.json"));
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  ExpectNothingAttached();
  EXPECT_EQ(LeftOvers(), "");
  const std::string handle = PdDriver::HandleOf("disk");
  for (const char* method :
       {"ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume",
        "NodeUnstageVolume", "ControllerUnpublishVolume"}) {
    // The detach follows when the pod is gone already.
    EXPECT_TRUE(Eventually(kPatience, [&] { return pd_->Answered(method, handle) > 0; })) << method;
    EXPECT_EQ(pd_->Answered(method, handle), 1) << method;
  }
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("b", "disk"));
  EXPECT_EQ(ReadText(PlaceOf("b", "disk") + "/kept.txt"), "kept");
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("b"));
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, AClaimGetsAVolumeOfItsClassWhichGoesWithIt) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data")));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "data"));
  const std::string volume = VolumeOf("data");
  ASSERT_TRUE(volume.starts_with("pvc-")) << volume;
  EXPECT_EQ(pd_->Answered("CreateVolume", volume), 1);
  WriteText(PlaceOf("a", volume) + "/kept.txt", "kept");
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  ExpectNothingAttached();
  EXPECT_EQ(pd_->Answered("DeleteVolume"), 0);
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return pd_->Answered("DeleteVolume", PdDriver::HandleOf(volume)) == 1;
  })) << pd_->Logs();
}

TEST_F(PdDriverTest, TwoPodsShareOneAttachmentAndOneStage) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("b", "disk"));
  WriteText(PlaceOf("a", "disk") + "/kept.txt", "kept");
  EXPECT_EQ(ReadText(PlaceOf("b", "disk") + "/kept.txt"), "kept");
  EXPECT_EQ(pd_->Answered("ControllerPublishVolume"), 1);
  EXPECT_EQ(pd_->Answered("NodeStageVolume"), 1);
  EXPECT_EQ(pd_->Answered("NodePublishVolume"), 2);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  EXPECT_EQ(ReadText(PlaceOf("b", "disk") + "/kept.txt"), "kept");
  EXPECT_EQ(pd_->Attached().size(), 1u);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("b"));
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, ABlockVolumeIsTheDiskItself) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk", "Block"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "disk", true));
  ASSERT_EQ(pd_->Attached().size(), 1u);
  const std::string loop = pd_->Attached().front();
  struct stat of_loop {};
  struct stat of_pod {};
  ASSERT_EQ(::stat(loop.substr(0, loop.find(' ')).c_str(), &of_loop), 0);
  const std::string link = root() + "/pods/uid-a/volumeDevices/kubernetes.io~csi/disk";
  ASSERT_EQ(::stat(link.c_str(), &of_pod), 0) << Explain("a");
  EXPECT_TRUE(S_ISBLK(of_pod.st_mode));
  EXPECT_EQ(of_pod.st_rdev, of_loop.st_rdev);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  ExpectNothingAttached();
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(PdDriverTest, AClaimThatGrowsMakesTheFilesystemOfItsPodLargerInUse) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data")));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "data"));
  const std::string place = PlaceOf("a", VolumeOf("data"));
  const std::vector<std::string> mounts = MountsBelow(place);
  EXPECT_LT(FilesystemBytes(place), kGib);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data", "2Gi")));
  EXPECT_TRUE(Eventually(kPatience, [&] { return FilesystemBytes(place) > kGib + kGib / 2; }))
      << Ctl({"describe", "pvc", "data"}).output << pd_->Logs();
  EXPECT_EQ(MountsBelow(place), mounts);
  EXPECT_TRUE(Eventually(kPatience, [&] { return MeasuredBytes("data") > kGib + kGib / 2; }))
      << MeasuredBytes("data");
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, APodWaitsForItsDriverAndGoesOnAsSoonAsItIsBack) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  pd_->KillNode();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("a", "disk")));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Explain("a").find(PdDriver::kName) != std::string::npos;
  })) << Explain("a");
  ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  pd_->KillNode();
  ASSERT_TRUE(Delete("Pod", "a").ok());
  EXPECT_FALSE(WaitGone("a", std::chrono::seconds(1))) << "nobody has unpublished its volume";
  ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
  ASSERT_TRUE(WaitGone("a")) << Explain("a");
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, NoPodThatGoesWaitsForItsControllerAndItsDiskIsDetachedOnceThatIsBack) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "disk"));
  pd_->KillCloud();
  ASSERT_TRUE(Delete("Pod", "a").ok());
  ASSERT_TRUE(WaitGone("a")) << "the pod waits for no controller: " << Explain("a");
  EXPECT_EQ(pd_->Attached().size(), 1u);
  ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, AnAgentThatIsKilledTakesItsVolumesOverWithoutACallThatChangesSomething) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyAndWait("a", "disk"));
  WriteText(PlaceOf("a", "disk") + "/kept.txt", "kept");
  const std::vector<std::string> mounts = MountsBelow(root());
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_EQ(MountsBelow(root()), mounts);
  EXPECT_EQ(ReadText(PlaceOf("a", "disk") + "/kept.txt"), "kept");
  EXPECT_EQ(pd_->Answered("ControllerPublishVolume"), 1);
  EXPECT_EQ(pd_->Answered("NodeStageVolume"), 1);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
  ExpectNothingAttached();
}

TEST_F(PdDriverTest, ANodeTakesAsManyVolumesAsItsDriverSaysAndTheNextWaitsForAPlace) {
  UsePd("c4a-standard-1");
  constexpr int kLimit = 7;
  ASSERT_NO_FATAL_FAILURE(StartAll());
  for (int i = 0; i <= kLimit; ++i) {
    ASSERT_NO_FATAL_FAILURE(ApplyDisk("disk" + std::to_string(i)));
  }
  for (int i = 0; i < kLimit; ++i) {
    const std::string number = std::to_string(i);
    ASSERT_NO_FATAL_FAILURE(ApplyAndWait("p" + number, "disk" + number));
  }
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("last", "disk7")));
  EXPECT_FALSE(WaitPhase("last", "Ready", std::chrono::seconds(2)));
  EXPECT_EQ(pd_->Attached().size(), static_cast<size_t>(kLimit));
  EXPECT_NE(Explain("last").find("limit"), std::string::npos) << Explain("last");
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("p0"));
  EXPECT_TRUE(WaitPhase("last", "Ready")) << Explain("last");
}

TEST_F(PdDriverTest, TheNodesCsiObjectHasTheDriversNameForItItsZoneAndItsLimit) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  std::string described;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    described = Ctl({"describe", "csinode", "n1"}).output;
    return described.find(pd_->NodeId()) != std::string::npos &&
           described.find(PdDriver::kTopologyKey) != std::string::npos &&
           described.find("127") != std::string::npos;
  })) << described;
}

}  // namespace
}  // namespace volumed::pd_driver_test
