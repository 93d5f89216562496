#include "cli/describe.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/top.h"

namespace volumed {
namespace {

constexpr int64_t kNow = 1'000'000'000'000;

v1::DescribeResponse DescribedVolume() {
  v1::DescribeResponse described;
  described.mutable_object()->set_kind("Volume");
  described.mutable_object()->set_namespace_("default");
  described.mutable_object()->set_name("web");
  v1::Volume* volume = described.mutable_volume();
  volume->set_name("data");
  volume->set_plugin("kubernetes.io/empty-dir");
  volume->set_state("SetUp");
  volume->set_since_unix_ms(kNow - 5000);
  volume->set_wanted(true);
  volume->set_host_path("/r/data");
  v1::VolumeMounts* mounts = described.add_mounts();
  mounts->set_volume("data");
  v1::MountFact* mount = mounts->add_mounts();
  mount->set_mount_point("/r/data");
  mount->set_fs_type("tmpfs");
  mount->set_source("tmpfs");
  mount->set_device("0:42");
  mount->set_root("/");
  mount->add_options("rw");
  mount->add_propagation("shared:7");
  return described;
}

std::string Text(const v1::DescribeResponse& described) {
  std::ostringstream out;
  PrintDescription(described, kNow, out);
  return out.str();
}

TEST(DescribeTest, AVolumeShowsItsPlaceAndMounts) {
  const std::string text = Text(DescribedVolume());
  for (const char* part : {"Kind:  Volume", "Name:  data", "Pod:   default/web",
                           "path:       /r/data\n", "in state:   since 5s ago, wanted",
                           "mount:      /r/data: tmpfs from tmpfs, device 0:42, rw, shared:7"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in:\n" << text;
  }
  EXPECT_EQ(text.find("Used by"), std::string::npos) << "what there is not is left out";
  EXPECT_EQ(text.find("()"), std::string::npos) << "no options of the filesystem, no brackets";
}

TEST(DescribeTest, EachLabelOfANodeHasALine) {
  v1::DescribeResponse described;
  described.mutable_object()->set_kind("Node");
  described.mutable_object()->set_name("n1");
  (*described.mutable_labels())["topology.disk.example.com/zone"] = "z1";
  (*described.mutable_labels())["kubernetes.io/os"] = "linux";
  EXPECT_EQ(Text(described),
            "Kind:    Node\n"
            "Name:    n1\n"
            "Labels:  kubernetes.io/os=linux\n"
            "         topology.disk.example.com/zone=z1\n");
}

TEST(DescribeTest, OptionsOfTheFilesystemStandInBracketsAndAPrivateMountSaysSo) {
  v1::DescribeResponse described = DescribedVolume();
  v1::MountFact* mount = described.mutable_mounts(0)->mutable_mounts(0);
  mount->set_root("/sub");
  mount->add_super_options("ro");
  mount->add_super_options("size=4k");
  mount->clear_propagation();
  const std::string text = Text(described);
  EXPECT_NE(text.find("device 0:42, its /sub, rw (ro,size=4k), private"), std::string::npos)
      << text;
}

TEST(DescribeTest, UsersComeWithTheirProblems) {
  v1::DescribeResponse described;
  described.mutable_object()->set_kind("Secret");
  v1::VolumeUse* use = described.add_used_by();
  use->mutable_pod()->set_namespace_("default");
  use->mutable_pod()->set_name("web");
  use->set_volume("s");
  use->set_state("NotSetUp");
  use->mutable_problem()->set_message("no key k");
  use->mutable_problem()->set_who_must_act("the owner of secret default/x");
  described.add_not_shown("3 more users");
  const std::string text = Text(described);
  EXPECT_NE(text.find("pod default/web, volume s: NotSetUp\n"), std::string::npos) << text;
  EXPECT_NE(text.find("who acts:   the owner of secret default/x"), std::string::npos) << text;
  EXPECT_NE(text.find("Not shown: 3 more users"), std::string::npos) << text;
}

TEST(TopTest, WhatWaitsForADriverSaidNeitherForWhichNorWhoActs) {
  v1::WatchOperationsResponse answer;
  answer.set_now_unix_ms(100'000);
  v1::RunningOperation* const waiting = answer.add_operations();
  waiting->set_volume("reclaim/pvc-1");
  waiting->set_operation("volume_delete");
  waiting->set_step("WaitForDriver");
  waiting->set_waits_for("CSI driver x is gone since 10:00");
  waiting->set_who_must_act("an administrator");
  std::ostringstream out;
  PrintTop(answer, OutputFormat::kTable, out);
  EXPECT_NE(out.str().find("RATE  WAITS FOR"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("CSI driver x is gone since 10:00; who acts: an administrator"),
            std::string::npos)
      << out.str();
}

// Of a driver that hung it showed the step alone.
TEST(TopTest, WhatADriverIsAtSaidNeitherWhichNorWhatItWasCalledFor) {
  v1::WatchOperationsResponse answer;
  answer.set_now_unix_ms(kNow);
  v1::RunningOperation* const running = answer.add_operations();
  running->set_volume("provision/pvc-1");
  running->set_operation("volume_provision");
  running->set_step("Provision");
  running->set_awaited("CSI driver x: CreateVolume");
  running->set_awaited_since_unix_ms(kNow - 45'000);
  answer.add_operations()->set_step("SetUp");
  std::ostringstream out;
  PrintTop(answer, OutputFormat::kTable, out);
  EXPECT_NE(out.str().find("WAITS FOR"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("CSI driver x: CreateVolume since 45s"), std::string::npos) << out.str();
}

TEST(TopTest, ShowsStepProgressAndRateAndWhatIsStuck) {
  v1::WatchOperationsResponse answer;
  answer.set_now_unix_ms(kNow);
  std::ostringstream idle;
  PrintTop(answer, OutputFormat::kTable, idle);
  EXPECT_EQ(idle.str(), "nothing runs\n");
  v1::RunningOperation* operation = answer.add_operations();
  operation->mutable_pod()->set_uid("u1");
  operation->set_volume("data");
  operation->set_operation("volume_unmount");
  operation->set_step("TearDown");
  operation->set_since_unix_ms(kNow - 65'000);
  operation->set_step_since_unix_ms(kNow - 4'000);
  operation->set_done(120'000);
  operation->set_per_second(30'000.4);
  v1::StuckOperation* stuck = answer.add_stuck();
  stuck->set_key("u2/remote");
  stuck->set_request("Stat");
  stuck->set_path("/mnt/dead");
  stuck->set_since_unix_ms(kNow - 10'000);
  std::ostringstream out;
  PrintTop(answer, OutputFormat::kTable, out);
  EXPECT_EQ(out.str(),
            "POD  VOLUME  OPERATION       STEP      SINCE  IN STEP  DONE    RATE\n"
            "u1   data    volume_unmount  TearDown  1m5s   4s       120000  30000/s\n"
            "\n"
            "STUCK      REQUEST  SINCE  PATH\n"
            "u2/remote  Stat     10s    /mnt/dead\n");
}

TEST(TopTest, WhatWaitsToBeTakenBackWasNotShown) {
  v1::WatchOperationsResponse answer;
  answer.set_now_unix_ms(kNow);
  v1::WaitingOperation* waiting = answer.add_waiting();
  waiting->set_what("volume pvc-1");
  waiting->mutable_problem()->set_message("no disk is so large");
  waiting->mutable_problem()->set_who_must_act("nobody: retried");
  waiting->mutable_problem()->set_next_try_unix_ms(kNow + 2000);
  std::ostringstream out;
  PrintTop(answer, OutputFormat::kTable, out);
  EXPECT_EQ(out.str(),
            "nothing runs\n"
            "\n"
            "waits: volume pvc-1\n"
            "    error:      no disk is so large\n"
            "    who acts:   nobody: retried\n"
            "    next try:   in 2s\n");
}

}  // namespace
}  // namespace volumed
