#include "operation/pod_directories.h"

#include <gtest/gtest.h>

#include "fakes/fake_kernel.h"
#include "unit/operation/stub_host.h"

namespace volumed {
namespace {

const PodUid kPod("uid-1");

class PodDirectoriesTest : public ::testing::Test {
 protected:
  PodDirectoriesTest() { kernel_.AddDirectory("/var/lib/volumed/pods", 0750); }
  Status Make() { return MakePodDirectories(kernel_, paths_, kPod, CallOptions()); }
  Status Remove(PodDirectoryOwner owner = PodDirectoryOwner::kAgent) {
    return RemovePodDirectories(kernel_, paths_, kPod, owner, CallOptions());
  }
  void ExpectRefusedNaming(const std::string& path) {
    const Status status = Remove();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Code::kFailedPrecondition) << status.error().ToString();
    EXPECT_NE(status.error().message().find(path), std::string::npos) << status.error().ToString();
    EXPECT_TRUE(kernel_.Exists(path));
  }

  FakeKernel kernel_;
  KubeletPaths paths_{"/var/lib/volumed"};
};

TEST_F(PodDirectoriesTest, HaveKubeletsLayoutAndModes) {
  ASSERT_TRUE(Make().ok());
  for (const char* name : {"", "/volumes", "/plugins"}) {
    EXPECT_EQ(kernel_.Find(kPodDir + name).type, FileType::kDirectory) << name;
    EXPECT_EQ(kernel_.Find(kPodDir + name).mode, 0750u) << name;
  }
  EXPECT_TRUE(Make().ok());
}

TEST_F(PodDirectoriesTest, GoWithWhatIsKnownToBeLeftInThem) {
  ASSERT_TRUE(Make().ok());
  kernel_.AddDirectory(kPodDir + "/volumes/kubernetes.io~empty-dir/data");
  kernel_.AddDirectory(kPodDir + "/volumes/kubernetes.io~secret");
  kernel_.AddFile(kPodDir + "/plugins/kubernetes.io~empty-dir/wrapped_creds/ready", "");
  kernel_.AddDirectory(kPodDir + "/volume-subpaths/data/app/0");
  ASSERT_TRUE(Remove().ok()) << Remove().error().ToString();
  EXPECT_FALSE(kernel_.Exists(kPodDir));
  EXPECT_TRUE(kernel_.Exists("/var/lib/volumed/pods"));
}

TEST_F(PodDirectoriesTest, OfAPodThatIsGoneAreNoError) { EXPECT_TRUE(Remove().ok()); }

TEST_F(PodDirectoriesTest, StayWhenAVolumeHoldsAFile) {
  ASSERT_TRUE(Make().ok());
  kernel_.AddFile(kPodDir + "/volumes/kubernetes.io~empty-dir/data/precious", "x");
  ASSERT_FALSE(Remove().ok());
  EXPECT_NE(Remove().error().message().find("kubernetes.io~empty-dir/data"), std::string::npos);
  EXPECT_EQ(kernel_.Find(kPodDir + "/volumes/kubernetes.io~empty-dir/data/precious").content, "x");
}

TEST_F(PodDirectoriesTest, StayWhenAVolumeIsStillMountedAndNobodyLooksIntoIt) {
  ASSERT_TRUE(Make().ok());
  const std::string volume = kPodDir + "/volumes/kubernetes.io~nfs/data";
  kernel_.AddMount("nfs4", "server:/export", volume);
  ASSERT_FALSE(Remove().ok());
  EXPECT_TRUE(kernel_.IsMountPoint(volume));
  for (const std::string& line : kernel_.call_log()) {
    if (line.find("ListDirectory") != std::string::npos) {
      EXPECT_EQ(line.find("~nfs/data"), std::string::npos) << line;
    }
  }
}

TEST_F(PodDirectoriesTest, StayUntouchedWhenSomethingForeignIsAmongThem) {
  ASSERT_TRUE(Make().ok());
  kernel_.AddFile(kPodDir + "/etc-hosts", "127.0.0.1");
  ExpectRefusedNaming(kPodDir + "/etc-hosts");
  EXPECT_TRUE(kernel_.Exists(kPodDir + "/volumes"));
  kernel_.Remove(kPodDir + "/etc-hosts");
  kernel_.AddDirectory(kPodDir + "/containers/app");
  ExpectRefusedNaming(kPodDir + "/containers");
  kernel_.Remove(kPodDir + "/containers");
  kernel_.AddFile(kPodDir + "/volumes/note", "x");
  ExpectRefusedNaming(kPodDir + "/volumes/note");
  kernel_.Remove(kPodDir + "/volumes/note");
  kernel_.AddFile(kPodDir + "/plugins/kubernetes.io~empty-dir/data/state.json", "{}");
  ExpectRefusedNaming(kPodDir + "/plugins/kubernetes.io~empty-dir/data/state.json");
}

TEST_F(PodDirectoriesTest, OfAnAdoptedRootGoWithKubeletsOwnEntries) {
  ASSERT_TRUE(Make().ok());
  kernel_.AddFile(kPodDir + "/etc-hosts", "127.0.0.1");
  kernel_.AddFile(kPodDir + "/containers/app/0f3a", "");
  kernel_.AddFile(kPodDir + "/plugins/kubernetes.io~empty-dir/data/ready", "");
  kernel_.AddFile(kPodDir + "/plugins/kubernetes.io~other/data/state.json", "{}");
  EXPECT_FALSE(Remove().ok()) << "without adoption they are foreign";
  const Status removed = Remove(PodDirectoryOwner::kKubelet);
  ASSERT_TRUE(removed.ok()) << removed.error().ToString();
  EXPECT_FALSE(kernel_.Exists(kPodDir));
}

TEST_F(PodDirectoriesTest, OfAnAdoptedRootStillNameWhatIsNotKubelets) {
  ASSERT_TRUE(Make().ok());
  kernel_.AddFile(kPodDir + "/etc-hosts", "127.0.0.1");
  kernel_.AddFile(kPodDir + "/notes.txt", "x");
  Status status = Remove(PodDirectoryOwner::kKubelet);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("/notes.txt"), std::string::npos);
  EXPECT_TRUE(kernel_.Exists(kPodDir + "/etc-hosts")) << "nothing is touched before";
  kernel_.Remove(kPodDir + "/notes.txt");
  // A directory by the name of a file of kubelet's is not kubelet's.
  kernel_.Remove(kPodDir + "/etc-hosts");
  kernel_.AddDirectory(kPodDir + "/etc-hosts");
  status = Remove(PodDirectoryOwner::kKubelet);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("/etc-hosts"), std::string::npos);
}

TEST_F(PodDirectoriesTest, OfAnAdoptedRootNeverGoAcrossAMountOrBeforeTheirVolumes) {
  ASSERT_TRUE(Make().ok());
  kernel_.AddFile(kPodDir + "/etc-hosts", "127.0.0.1");
  const std::string container = kPodDir + "/containers/app/bound";
  kernel_.AddMount("ext4", "/dev/vdb", container);
  Status status = Remove(PodDirectoryOwner::kKubelet);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("/containers"), std::string::npos)
      << status.error().ToString();
  EXPECT_TRUE(kernel_.IsMountPoint(container));
  ASSERT_TRUE(MakePodDirectories(kernel_, paths_, kPod, CallOptions()).ok());
  kernel_.AddFile(kPodDir + "/volumes/kubernetes.io~empty-dir/data/precious", "x");
  ASSERT_FALSE(Remove(PodDirectoryOwner::kKubelet).ok());
  EXPECT_TRUE(kernel_.Exists(kPodDir + "/etc-hosts"));
  EXPECT_TRUE(kernel_.Exists(kPodDir + "/volumes/kubernetes.io~empty-dir/data/precious"));
}

}  // namespace
}  // namespace volumed
