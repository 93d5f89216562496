// The ladder as a function: from every state of a device, whatever is known of its attachment.
#include "volumemanager/devices/attach_ladder.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "base/manual_clock.h"
#include "operation/attach_requests.h"
#include "volumemanager/actual_devices.h"

namespace volumed {
namespace {

const std::vector<VolumeState> kDeviceStates = {
    VolumeState::kDetached,       VolumeState::kAttaching,     VolumeState::kAttached,
    VolumeState::kMountingDevice, VolumeState::kDeviceMounted, VolumeState::kUnmountingDevice,
    VolumeState::kDetaching,      VolumeState::kExpanding};

template <typename Check>
void ForEachDevice(Check check) {
  for (const VolumeState state : kDeviceStates) {
    for (const bool uncertain : {false, true}) {
      for (const Attachment attachment :
           {Attachment::kUnknown, Attachment::kAttached, Attachment::kMissing}) {
        ActualDevice device;
        device.attachable = true;
        device.state = state;
        device.uncertain = uncertain;
        device.attachment = attachment;
        check(device);
      }
    }
  }
}

TEST(AttachLadderTest, NothingIsTakenAwayWhileAPodHasItOrBeforeAllSourcesAreHeard) {
  ForEachDevice([](const ActualDevice& device) {
    for (const bool wanted : {false, true}) {
      for (const bool used : {false, true}) {
        const AttachStep step = NextAttachStep({&device, wanted, true, used, !used});
        if (!used) continue;
        EXPECT_NE(step, AttachStep::kUnmount) << VolumeStateName(device.state);
        EXPECT_NE(step, AttachStep::kDetach) << VolumeStateName(device.state);
        EXPECT_NE(step, AttachStep::kForget) << VolumeStateName(device.state);
      }
    }
    const AttachStep early = NextAttachStep({&device, false, false, false, false});
    EXPECT_EQ(early, AttachStep::kNothing) << VolumeStateName(device.state);
  });
}

TEST(AttachLadderTest, OnlyWhatIsAttachedForCertainIsMounted) {
  ForEachDevice([](const ActualDevice& device) {
    if (NextAttachStep({&device, true, true, false, true}) != AttachStep::kMount) return;
    EXPECT_EQ(device.attachment, Attachment::kAttached) << VolumeStateName(device.state);
    EXPECT_NE(device.state, VolumeState::kDetached);
    EXPECT_NE(device.state, VolumeState::kAttaching);
    EXPECT_NE(device.state, VolumeState::kDetaching);
  });
}

TEST(AttachLadderTest, WhatMayBeMountedIsUnmountedBeforeItIsDetachedOrAttachedAnew) {
  ForEachDevice([](const ActualDevice& device) {
    if (device.state != VolumeState::kMountingDevice &&
        device.state != VolumeState::kDeviceMounted &&
        device.state != VolumeState::kUnmountingDevice) {
      return;
    }
    EXPECT_EQ(NextAttachStep({&device, false, false, false, true}), AttachStep::kUnmount)
        << VolumeStateName(device.state);
    EXPECT_NE(NextAttachStep({&device, true, true, false, true}), AttachStep::kAttach);
  });
}

// A driver may list wrong nodes: what that brings about is that the volume is attached once more.
TEST(AttachLadderTest, WhatIsWantedIsNeverDetachedWhateverItsPluginSaysOfWhereItIs) {
  ForEachDevice([](ActualDevice device) {
    for (const bool rest : {false, true}) {
      device.rest_of_mount = rest;
      for (const bool used : {false, true}) {
        const AttachStep step = NextAttachStep({&device, true, true, used, true});
        EXPECT_NE(step, AttachStep::kDetach) << VolumeStateName(device.state);
        EXPECT_NE(step, AttachStep::kForget) << VolumeStateName(device.state);
        if (step != AttachStep::kUnmount) continue;
        EXPECT_FALSE(used) << VolumeStateName(device.state);
        EXPECT_EQ(device.attachment, Attachment::kMissing) << VolumeStateName(device.state);
      }
    }
  });
}

// Its unmount was tried for ever, although its record said that it was unmounted.
TEST(AttachLadderTest, AnAttachedDeviceThatIsMissingIsDetachedAndNotUnmountedOnceMore) {
  ActualDevice device;
  device.attachable = true;
  device.state = VolumeState::kAttached;
  device.attachment = Attachment::kMissing;
  device.uncertain = true;
  EXPECT_EQ(NextAttachStep({&device, false, false, false, true}), AttachStep::kDetach);
  device.rest_of_mount = true;
  EXPECT_EQ(NextAttachStep({&device, false, false, false, true}), AttachStep::kUnmount);
}

// It was staged although nobody knew whether it was attached: its driver was asked, and has said
// yes of a volume that it knows by the record alone.
TEST(AttachLadderTest, ADeviceWhoseAttachIsInDoubtWasMountedWhenItsUnmountHadNoAnswer) {
  ManualClock clock;
  ActualDevices devices(clock);
  const UniqueVolumeName name("p/v");
  ActualDevice found;
  found.attachable = true;
  found.state = VolumeState::kAttaching;  // anew, after a boot
  found.rest_of_mount = true;
  devices.AddReconstructed(name, found);
  const auto next = [&](bool wanted, bool used) {
    return NextAttachStep({devices.Find(name), wanted, wanted, used, true});
  };
  ASSERT_EQ(next(false, false), AttachStep::kUnmount);
  devices.UnmountStarted(name);
  const OperationFailure lost{"unmount_device", "UnmountDevice",
                              Error::MaybeApplied(Code::kDeadlineExceeded, "no answer")};
  devices.UnmountDone(name, OutcomeOf(std::optional(lost), Unit{}));
  devices.AttachmentVerified(name, true);
  EXPECT_EQ(next(true, false), AttachStep::kUnmount) << "only that may follow";
  EXPECT_EQ(next(true, true), AttachStep::kNothing);
  devices.UnmountStarted(name);
  devices.UnmountDone(name, OutcomeOf(std::nullopt, Unit{}));
  EXPECT_EQ(next(true, false), AttachStep::kAttach);
}

// Its mount directory stayed for ever if its pod left before it was attached and mounted anew.
TEST(AttachLadderTest, TheRestOfAMountIsTakenAwayWhateverBecameOfAttachingItAnew) {
  const OperationFailure away{"volume_attach", "Attach",
                              Error::NotApplied(Code::kUnavailable, "away")};
  for (const bool is_attached : {false, true}) {
    ManualClock clock;
    ActualDevices devices(clock);
    const UniqueVolumeName name("p/v");
    ActualDevice found;
    found.attachable = true;
    found.state = VolumeState::kAttached;
    found.uncertain = true;  // the node was booted
    found.rest_of_mount = true;
    devices.AddReconstructed(name, found);
    const auto next = [&](bool wanted) {
      return NextAttachStep({devices.Find(name), wanted, wanted, false, true});
    };
    ASSERT_EQ(next(true), AttachStep::kAttach);
    devices.AttachStarted(name, {"p", SpecName("v")});
    devices.AttachDone(
        name, OutcomeOf(is_attached ? std::nullopt : std::optional(away), AttachedVolume{}));
    ASSERT_EQ(next(false), AttachStep::kUnmount);
    devices.UnmountStarted(name);
    EXPECT_EQ(devices.Find(name)->state, VolumeState::kUnmountingDevice);
    devices.UnmountDone(name, OutcomeOf(std::nullopt, Unit{}));
    EXPECT_EQ(next(false), AttachStep::kDetach);
    // Another pod comes first: what is not known to be attached is attached before it is mounted.
    EXPECT_EQ(next(true), is_attached ? AttachStep::kMount : AttachStep::kAttach);
  }
}

// Its detach was refused for ever, for it was still mounted.
TEST(AttachLadderTest, AFoundMountIsTakenAwayThoughItsAttachMayOrMayNotBeDone) {
  ManualClock clock;
  ActualDevices devices(clock);
  const UniqueVolumeName name("p/v");
  ActualDevice found;
  found.unrecorded = true;
  devices.AddReconstructed(name, found);
  devices.AttachStarted(name, {"p", SpecName("v")});
  devices.AttachDone(name, OutcomeOf(std::optional(OperationFailure{
                                         "volume_attach", "Attach",
                                         Error::MaybeApplied(Code::kDeadlineExceeded, "slow")}),
                                     AttachedVolume{}));
  const auto next = [&] { return NextAttachStep({devices.Find(name), false, false, false, true}); };
  ASSERT_EQ(next(), AttachStep::kUnmount);
  devices.UnmountStarted(name);
  EXPECT_EQ(devices.Find(name)->state, VolumeState::kUnmountingDevice);
  devices.UnmountDone(name, OutcomeOf(std::nullopt, Unit{}));
  EXPECT_EQ(next(), AttachStep::kDetach);
}

TEST(AttachLadderTest, EachStepIsOneThatTheTableAllows) {
  const auto event_of = [](AttachStep step) -> std::optional<VolumeEvent> {
    switch (step) {
      case AttachStep::kAttach:
        return VolumeEvent::kAttach;
      case AttachStep::kMount:
        return VolumeEvent::kMountDevice;
      case AttachStep::kUnmount:
        return VolumeEvent::kUnmountDevice;
      case AttachStep::kDetach:
        return VolumeEvent::kDetach;
      case AttachStep::kNothing:
      case AttachStep::kVerify:
      case AttachStep::kForget:
        break;
    }
    return std::nullopt;
  };
  ForEachDevice([&](const ActualDevice& device) {
    if (device.state == VolumeState::kDetached && device.uncertain) return;  // never assigned
    for (const bool wanted : {false, true}) {
      const AttachStep step = NextAttachStep({&device, wanted, true, false, true});
      const std::optional<VolumeEvent> event = event_of(step);
      if (!event) continue;
      VolumeState from = device.state;
      const bool is_not_mounted = from == VolumeState::kAttached || from == VolumeState::kAttaching;
      if (is_not_mounted && step == AttachStep::kUnmount) {
        from = Next(from, VolumeEvent::kFound)->to;  // what a reboot has left
      }
      EXPECT_TRUE(Next(from, *event).has_value())
          << VolumeStateName(device.state) << " " << VolumeEventName(*event);
    }
  });
}

TEST(AttachLadderTest, APodWithoutARecordBeginsNothing) {
  EXPECT_EQ(NextAttachStep({nullptr, true, false, false, true}), AttachStep::kNothing);
  EXPECT_EQ(NextAttachStep({nullptr, true, true, false, true}), AttachStep::kAttach);
  EXPECT_EQ(NextAttachStep({nullptr, false, false, false, true}), AttachStep::kNothing);
}

}  // namespace
}  // namespace volumed
