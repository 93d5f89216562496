#include "agent/pod_list.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "agent/pod_lookup.h"
#include "fakes/must.h"
#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

class PodListTest : public ManagerTest {
 protected:
  PodList::Parts Parts() { return {manager(), events_, clock, NodeName("node")}; }
  // The names that all pages have, and how often the control thread was taken for them.
  std::vector<std::string> List(v1::GetPodsRequest request) {
    std::vector<std::string> names;
    steps_ = pages_ = 0;
    do {
      v1::GetPodsResponse response;
      PodList list(Parts(), request, Must(PodList::LastBefore(Parts(), request)), &response);
      ++pages_;
      do {
        ++steps_;
      } while (!list.Continue());
      for (const v1::Pod& pod : response.pods()) names.push_back(pod.name());
      request.set_page(response.next_page());
    } while (!request.page().empty());
    return names;
  }

  void DeliverPods(int count) {
    std::string manifest;
    for (int i = 0; i < count; ++i) {
      manifest += PodManifest("p" + std::to_string(1000 + i), {"one: emptyDir: {}"});
    }
    Deliver(manifest);
  }

  EventLog events_{clock};
  int steps_ = 0;
  int pages_ = 0;
};

TEST_F(PodListTest, ALongListTakesTheControlThreadForAHundredPodsAtATime) {
  StartAgent();
  DeliverPods(1000);
  const std::vector<std::string> names = List({});
  EXPECT_EQ(names.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(pages_, 1);
  EXPECT_EQ(steps_, 10);
}

TEST_F(PodListTest, PagesTogetherHaveEachPodOnceAndInOrder) {
  StartAgent();
  DeliverPods(250);
  v1::GetPodsRequest request;
  request.set_page_size(100);
  const std::vector<std::string> names = List(request);
  EXPECT_EQ(names.size(), 250u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 250u);
  EXPECT_EQ(pages_, 3);
  request.set_page_size(125);
  EXPECT_EQ(List(request), names);
  EXPECT_EQ(pages_, 2) << "the last page is full, and says that it is the last";
}

// It was an empty list, and a script that looked for pods before it took a disk away went on.
TEST_F(PodListTest, PodsOnRecordWereToldAsNoneBeforeTheRecordsWereLoaded) {
  PutPodRecord("a");
  v1::ObjectRef ref;
  ref.set_name("a");
  const NodeName node_name("node");
  StartAgent();
  const Result<PodName> list = PodList::LastBefore(Parts(), {});
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().code(), Code::kUnavailable);
  EXPECT_FALSE(list.error().maybe_applied());
  EXPECT_EQ(list.error().message(), "the pods are not known yet: the records are being loaded");
  // What takes one pod, as `hold` and `oci` do, must not say either that there is none.
  const Result<PodUid> early = FindPodUid(manager(), ref, node_name);
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code(), Code::kUnavailable);
  EXPECT_EQ(early.error().message(), "no pod default/a is known yet: the records are being loaded");
  Settle();
  EXPECT_EQ(List({}), std::vector<std::string>{"a"});
  EXPECT_EQ(Must(FindPodUid(manager(), ref, node_name)), PodUid("a"));
  ref.set_name("b");
  EXPECT_EQ(FindPodUid(manager(), ref, node_name).error().code(), Code::kNotFound);
}

TEST_F(PodListTest, WhyTheRecordsAreNotLoadedIsToldToWhoAsksForPods) {
  store.FailNextLoad(Error::NotApplied(Code::kUnavailable, "locked"));
  StartAgent();
  Settle();
  const Result<PodName> list = PodList::LastBefore(Parts(), {});
  ASSERT_FALSE(list.ok());
  EXPECT_NE(list.error().message().find("locked"), std::string::npos) << list.error().message();
}

TEST_F(PodListTest, APageOfAListOfOtherPodsIsRefused) {
  StartAgent();
  Settle();
  v1::GetPodsRequest request;
  request.set_page("pods/default/p1000/uid-1");
  EXPECT_EQ(Must(PodList::LastBefore(Parts(), request)),
            (PodName{"default", "p1000", PodUid("uid-1")}));
  request.set_namespace_("default");
  request.set_name("uid-1");
  EXPECT_TRUE(PodList::LastBefore(Parts(), request).ok());
  request.set_name("p1001");
  EXPECT_EQ(PodList::LastBefore(Parts(), request).error().code(), Code::kInvalidArgument);
  request.clear_name();
  request.set_namespace_("other");
  EXPECT_EQ(PodList::LastBefore(Parts(), request).error().code(), Code::kInvalidArgument);
  request.set_page("-1");
  EXPECT_EQ(PodList::LastBefore(Parts(), request).error().code(), Code::kInvalidArgument);
}

TEST_F(PodListTest, OfOneNameNoOtherPodIsLookedAt) {
  StartAgent();
  DeliverPods(500);
  v1::GetPodsRequest request;
  request.set_name("p1400");
  EXPECT_EQ(List(request), std::vector<std::string>{"p1400"});
  EXPECT_EQ(steps_, 1);
}

TEST_F(PodListTest, APodThatGoesWhileOthersAreListedIsLeftOut) {
  StartAgent();
  DeliverPods(150);
  v1::GetPodsResponse response;
  PodList list(Parts(), {}, PodName(), &response);
  EXPECT_FALSE(list.Continue());
  Delete("p1120");
  Deliver("");
  Pass(std::chrono::minutes(5));
  EXPECT_TRUE(list.Continue());
  EXPECT_EQ(response.pods_size(), 100);
}

TEST_F(PodListTest, ASummaryHasCountsInPlaceOfVolumesAndWhatHasToBeToldFirst) {
  StartAgent();
  operations().FailNext("mount", Key("a", "two"), Error::NotApplied(Code::kInternal, "x"), 1);
  Deliver(PodManifest("a", {"one: emptyDir: {}", "two: emptyDir: {}"}));
  v1::GetPodsRequest request;
  request.set_summary(true);
  v1::GetPodsResponse response;
  PodList list(Parts(), request, PodName(), &response);
  ASSERT_TRUE(list.Continue());
  ASSERT_EQ(response.pods_size(), 1);
  const v1::Pod& pod = response.pods(0);
  EXPECT_EQ(pod.volumes_size(), 0);
  EXPECT_EQ(pod.volume_count(), 2);
  EXPECT_EQ(pod.set_up_count(), 1);
  ASSERT_EQ(pod.problems_size(), 1);
  EXPECT_EQ(pod.problems(0).message(), "two: x");
}

// A pod that was ready with its one block volume was shown as 0/1.
TEST_F(PodListTest, AMappedBlockVolumeWasNotCountedInASummary) {
  StartAgent();
  std::string pod = PodManifest("a", {"data: persistentVolumeClaim: {claimName: data}"});
  const std::string mounts = "volumeMounts:\n    - {name: data, mountPath: /mnt/data}";
  pod.replace(pod.find(mounts), mounts.size(),
              "volumeDevices: [{name: data, devicePath: /dev/xvda}]");
  Deliver(
      "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n  capacity: "
      "{storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  volumeMode: Block\n  local: {path: "
      "/dev/vdb}\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: "
      "metadata.name, operator: In, values: [n1]}]}]}}\n"
      "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
      "default, uid: claim-data}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeMode: Block\n  "
      "volumeName: disk\n  resources: {requests: {storage: 1Gi}}\n" +
      pod);
  ASSERT_EQ(Phase("a"), "Ready");
  ASSERT_EQ(View("a").volumes.at(0).state, "Mapped");
  v1::GetPodsRequest request;
  request.set_summary(true);
  v1::GetPodsResponse response;
  PodList list(Parts(), request, PodName(), &response);
  ASSERT_TRUE(list.Continue());
  ASSERT_EQ(response.pods_size(), 1);
  EXPECT_EQ(response.pods(0).volume_count(), 1);
  EXPECT_EQ(response.pods(0).set_up_count(), 1);
}

}  // namespace
}  // namespace volumed
