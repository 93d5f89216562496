// What people are told of objects that a source loses.
#include "agent/source_losses.h"

#include <gtest/gtest.h>

#include "unit/volumemanager/claims/known_objects_fixture.h"

namespace volumed {
namespace {

std::string WithOneVolume(const std::string& volume) {
  return "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: " + volume +
         ", mountPath: /v}]}]\n  volumes: [{name: " + volume + ", emptyDir: {}}]\n";
}

class SourceLossesTest : public TwoSourcesTest {
 protected:
  SourceLosses::AbsentObjects Replaced(const std::string& source) {
    SourceLosses::AbsentObjects replaced;
    SourceLosses(catalog(), manager(), {}).EncodeReplaced(source, &replaced);
    return replaced;
  }
  void DeliverPods(const std::string& volume_of_web) {
    DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", WithOneVolume(volume_of_web)),
                              StaticPod("n1", "/m/db.yaml", WithOneVolume("data"), "name: db")});
  }
};

TEST_F(SourceLossesTest, AnEditedPodIsToldOfItsOwnSourceAndNoOtherPodIs) {
  Restart();
  Deliver("", kApplied);
  DeliverPods("first");
  EXPECT_TRUE(Replaced("manifests").empty());
  DeliverPods("second");
  const SourceLosses::AbsentObjects replaced = Replaced("manifests");
  ASSERT_EQ(replaced.size(), 1);
  EXPECT_EQ(replaced[0].object().name(), "web-n1");
  EXPECT_EQ(replaced[0].file(), "/m/web.yaml");
  EXPECT_EQ(replaced[0].presence(), "present");
  EXPECT_EQ(replaced[0].goes_at_unix_ms() - clock.WallUnixMillis(), 10'000);
  EXPECT_TRUE(Replaced(kApplied).empty());
}

TEST_F(SourceLossesTest, OfAnObjectThatAnotherSourceHasNoDataGoes) {
  Restart();
  Deliver("");
  const std::string volume = WithOneVolume("data");
  DeliverList(kApplied, {StaticPod("n1", "/objects/web.json", volume)});
  ObjectList list;
  list.source = "manifests";
  list.complete = true;
  list.objects = {StaticPod("n1", "/m/db.yaml", volume, "name: db"),
                  StaticPod("n1", "/m/web.yaml", volume)};
  for (ObjectWithOrigin& object : list.objects) object.presence = ObjectPresence::kGoing;
  SourceLosses losses(catalog(), manager(), {});
  losses.Note(ObjectUpdate(list));
  SourceLosses::AbsentObjects absent;
  losses.EncodeAbsent("manifests", &absent);
  ASSERT_EQ(absent.size(), 2);
  EXPECT_EQ(absent[0].presence(), "going");
  ASSERT_EQ(absent[0].disk_data_size(), 1);
  EXPECT_EQ(absent[0].disk_data(0), "data");
  EXPECT_EQ(absent[1].presence(), "moved");
  EXPECT_EQ(absent[1].reason(), "/objects/web.json has it");
  EXPECT_EQ(absent[1].disk_data_size(), 0);
  EXPECT_EQ(absent[1].mounted_volumes_size(), 0);
}

TEST_F(SourceLossesTest, WhatOutlivesPodsIsToldOfItsSourceOnceItIsMissing) {
  Restart();
  Deliver("", kApplied);
  Deliver(
      "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {capacity: {storage: "
      "1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, hostPath: {path: "
      "/srv/data}}\n" +
      ConfigMap("app", "1"));
  Deliver("");
  const SourceLosses losses(catalog(), manager(), {});
  v1::Source manifests;
  losses.EncodeMissing("manifests", &manifests);
  ASSERT_EQ(manifests.missing_size(), 1) << "a ConfigMap is gone";
  EXPECT_EQ(manifests.missing(0).object().name(), "disk");
  EXPECT_EQ(manifests.missing(0).presence(), "missing");
  EXPECT_EQ(manifests.missing_count(), 1);
  v1::Source applied;
  losses.EncodeMissing(kApplied, &applied);
  EXPECT_EQ(applied.missing_count(), 0);
}

}  // namespace
}  // namespace volumed
