// What VolumeAttachments mean for the node: they let a device be tried, and never take one away.
#include "unit/volumemanager/devices/attached_fixture.h"

namespace volumed {
namespace {

using std::chrono::hours;

class VolumeAttachmentsTest : public AttachedTest {
 protected:
  void SetUp() override { StartAgent(); }

  static std::string Attachment(const std::string& status, const std::string& node = "n1") {
    return "---\napiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: "
           "va}\nspec: "
           "{attacher: array.test.io, nodeName: " +
           node + ", source: {persistentVolumeName: disk}}\nstatus: {" + status + "}\n";
  }
  // The device has failed once, and waits for its next try.
  void Fail(const std::string& attachment) {
    operations().FailNext("attach", OperationKey(Device("disk")),
                          Error::NotApplied(Code::kUnavailable, "not attached yet"), 100);
    Deliver(attachment + kDiskAndUser);
    tried_ = operations().Count("attach");
    ASSERT_GT(tried_, 0u);
  }
  size_t TriedSince() { return operations().Count("attach") - tried_; }

  const std::string kDiskAndUser = Volume("disk") + User("a", "disk");
  size_t tried_ = 0;
};

TEST_F(VolumeAttachmentsTest, OneThatDisappearsTakesNothingFromTheNode) {
  Deliver(Attachment("attached: true") + kDiskAndUser);
  ASSERT_EQ(Phase("a"), "Ready");
  (void)Done();
  Deliver(kDiskAndUser);
  Pass(hours(1));
  EXPECT_EQ(Phase("a"), "Ready");
  for (const char* what : {"unmount", "unmount_device", "detach"}) {
    EXPECT_EQ(operations().Count(what), 0u) << what;
  }
}

TEST_F(VolumeAttachmentsTest, OneThatSaysDetachedTakesNothingFromTheNodeEither) {
  Deliver(Attachment("attached: true") + kDiskAndUser);
  ASSERT_EQ(Phase("a"), "Ready");
  Deliver(Attachment("attached: false") + kDiskAndUser);
  Pass(hours(1));
  EXPECT_EQ(Phase("a"), "Ready");
  for (const char* what : {"unmount", "unmount_device", "detach"}) {
    EXPECT_EQ(operations().Count(what), 0u) << what;
  }
}

TEST_F(VolumeAttachmentsTest, OneThatComesOrChangesEndsTheBackOffOfItsDevice) {
  Fail("");
  Deliver(Attachment("attached: false") + kDiskAndUser);
  EXPECT_EQ(TriedSince(), 1u);
  Deliver(Attachment("attached: true") + kDiskAndUser);
  EXPECT_EQ(TriedSince(), 2u);
  Deliver(Attachment("attached: true") + kDiskAndUser);
  EXPECT_EQ(TriedSince(), 2u) << "nothing has changed";
}

TEST_F(VolumeAttachmentsTest, OneOfAnotherNodeIsNoneOfOurs) {
  Fail("");
  Deliver(Attachment("attached: true", "n2") + kDiskAndUser);
  EXPECT_EQ(TriedSince(), 0u);
}

TEST_F(VolumeAttachmentsTest, OneOfAVolumeThatNobodyHasConcernsNobody) {
  Deliver(Attachment("attached: true"));
  Deliver(Attachment("attached: false") + Volume("disk"));
  Deliver("");
  EXPECT_TRUE(operations().calls.empty() || operations().Count("attach") == 0u);
  EXPECT_EQ(operations().Count("detach"), 0u);
}

// Its detach waited for an attacher that had long done its work.
TEST_F(VolumeAttachmentsTest, OneWithAnInlineSpecWokeItsDeviceByBackOffOnly) {
  DeviceRecord device;
  device.key = UniqueVolumeName("kubernetes.io/csi/vol-1");
  device.plugin_name = "kubernetes.io/csi";
  device.spec = SpecName("of-a-pod");
  device.state = VolumeState::kAttached;
  device.boot_id = BootId("boot-1");
  device.attachable = true;
  ASSERT_TRUE(store.Put(EncodeRecord(device), kDeviceRecordDurability).ok());
  Restart();
  const OperationKey key(device.key);
  operations().FailNext("detach", key, Error::NotApplied(Code::kUnavailable, "is attached"), 100);
  const auto attachment = [](const std::string& handle) {
    return "---\napiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: va-" +
           handle +
           "}\nspec: {attacher: disk.example.com, nodeName: n1, source: {inlineVolumeSpec: {csi: "
           "{driver: disk.example.com, volumeHandle: " +
           handle + "}, accessModes: [ReadWriteOnce]}}}\nstatus: {attached: true}\n";
  };
  Deliver(attachment("vol-1") + attachment("vol-2"));
  const size_t tried = operations().Count("detach", key);
  ASSERT_GT(tried, 0u);
  Deliver(attachment("vol-1"));
  EXPECT_EQ(operations().Count("detach", key), tried) << "it is another volume's";
  Deliver("");
  EXPECT_EQ(operations().Count("detach", key), tried + 1);
}

// The PersistentVolume was gone before its attacher had detached it.
TEST_F(VolumeAttachmentsTest, OneOfAVolumeThatNobodyKnowsAnyMoreWokeNobody) {
  LeaveDevice("disk", VolumeState::kAttached);
  Restart();
  operations().FailNext("detach", OperationKey(Device("disk")),
                        Error::NotApplied(Code::kUnavailable, "is attached"), 100);
  Deliver(Attachment("attached: true"));
  const size_t tried = operations().Count("detach");
  ASSERT_GT(tried, 0u);
  Deliver("");
  EXPECT_EQ(operations().Count("detach"), tried + 1);
}

}  // namespace
}  // namespace volumed
