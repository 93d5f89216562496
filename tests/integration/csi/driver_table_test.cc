// What becomes of a volume whose driver does wrong: the rows of driver_behaviours.cc, those of a
// group beside each other on one daemon, a driver and a pod each. Whatever a driver has done, once
// it does right again its volume is set up, and goes without a trace.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "integration/csi/csi_agent_fixture.h"
#include "integration/csi/driver_behaviours.h"
#include "integration/loop_device.h"

namespace volumed::driver_table_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class DriverTableTest : public CsiAgentTest {
 protected:
  void TearDown() override {
    drivers_.clear();
    CsiAgentTest::TearDown();
  }

  // The rows that this machine can have, from their begin to their end.
  void Run(const std::vector<CsiBehaviour>& all) {
    for (const CsiBehaviour& row : all) {
      const bool needs_loop =
          row.block || std::string(row.options).find("loop") != std::string::npos;
      if (!needs_loop || HasLoopDevices()) rows_.push_back(&row);
    }
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    for (const CsiBehaviour* row : rows_) ASSERT_NO_FATAL_FAILURE(Begin(*row));
    for (const CsiBehaviour* row : rows_) {
      SCOPED_TRACE(std::string(row->number) + ": " + row->what);
      if (row->moment != BehaviourMoment::kComes) Change(*row);
    }
    for (const CsiBehaviour* row : rows_) {
      SCOPED_TRACE(std::string(row->number) + ": " + row->what);
      Look(*row);
    }
    for (const CsiBehaviour* row : rows_) {
      SCOPED_TRACE(std::string(row->number) + ": " + row->what);
      Heal(*row);
    }
    for (const CsiBehaviour* row : rows_) {
      SCOPED_TRACE(std::string(row->number) + ": " + row->what);
      EXPECT_TRUE(RetryUntilGone(Pod(*row))) << Shown(*row);
    }
    ExpectNothingLeft();
  }

  static std::string Driver(const CsiBehaviour& row) {
    return "b" + std::string(row.number) + ".example.com";
  }
  static std::string Pod(const CsiBehaviour& row) { return "p" + std::string(row.number); }
  static CsiTestVolume Volume(const CsiBehaviour& row) {
    CsiTestVolume volume = VolumeOf("v" + std::string(row.number), Driver(row));
    volume.block = row.block;
    volume.read_only = row.read_only;
    return volume;
  }
  CsiFakeDriver& DriverOf(const CsiBehaviour& row) { return *drivers_.at(Driver(row)); }

  // A claim that the driver makes the volume for, of the class of its name.
  static std::string ProvisionedStorage(const CsiBehaviour& row) {
    const std::string name = Volume(row).name;
    return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: " + name +
           "}\nprovisioner: " + Driver(row) +
           "\nreclaimPolicy: Delete\nallowVolumeExpansion: true\n---\napiVersion: v1\nkind: "
           "PersistentVolumeClaim\nmetadata: "
           "{name: " +
           name +
           ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n"
           "  storageClassName: " +
           name + "\n  resources: {requests: {storage: 16Mi}}\n";
  }

  // All that a person would look at.
  std::string Shown(const CsiBehaviour& row) const {
    return "\n" + Explain(Pod(row)) +
           Ctl({"describe", "persistentvolumeclaim", Volume(row).name}).output +
           Ctl({"describe", "persistentvolume", Volume(row).name}).output;
  }

  // What there is to look at afterwards, of this driver alone.
  std::string Kept(const CsiBehaviour& row) const {
    std::string kept = "\n" + Ctl({"csi", "--trace", Driver(row)}).output;
    std::istringstream log(ReadText(log_path()));
    for (std::string line; std::getline(log, line);) {
      if (line.find(Driver(row)) != std::string::npos) kept += line + "\n";
    }
    return kept;
  }

 private:
  void Begin(const CsiBehaviour& row) {
    Json options = Json::parse(CsiFakeOptionsText(OptionsOf(Driver(row))));
    options.merge_patch(Json::parse(row.options));
    auto driver = std::make_unique<CsiFakeDriver>(ParseCsiFakeOptions(options.dump()));
    if (row.moment == BehaviourMoment::kComes) driver->Script(row.script);
    drivers_[Driver(row)] = std::move(driver);
    const std::string storage = row.provisioned ? ProvisionedStorage(row) : Storage(Volume(row));
    ASSERT_NO_FATAL_FAILURE(ApplyOk(DriverObject(Driver(row), row.attaches) + storage +
                                    PodOn(Pod(row), {Volume(row)})));
  }

  // The pod is Ready, and the driver begins to do wrong.
  void Change(const CsiBehaviour& row) {
    ASSERT_TRUE(WaitPhase(Pod(row), "Ready")) << Shown(row);
    if (row.mount_upon) {
      const std::string target = TargetOf(Pod(row), Volume(row).name);
      EXPECT_EQ(RunCommand({"mount", "--bind", target, target}).exit_status, 0);
    }
    DriverOf(row).Script(row.script);
    if (row.moment == BehaviourMoment::kGoes) {
      EXPECT_TRUE(Delete("Pod", Pod(row)).ok());
    } else if (row.moment == BehaviourMoment::kGrows) {
      CsiTestVolume larger = Volume(row);
      larger.size = "32Mi";
      larger.claim_size = "16Mi";
      ApplyOk(row.provisioned ? Replaced(ProvisionedStorage(row), "16Mi", "32Mi")
                              : Storage(larger));
    }
  }

  void Look(const CsiBehaviour& row) {
    if (std::string(row.reaches) == "gone") {
      EXPECT_TRUE(RetryUntilGone(Pod(row))) << Shown(row);
    } else if (*row.reaches != '\0') {
      EXPECT_TRUE(RetryUntilPhase(Pod(row), row.reaches)) << Shown(row);
    }
    if (*row.says != '\0') {
      EXPECT_TRUE(
          Eventually(kPatience, [&] { return Shown(row).find(row.says) != std::string::npos; }))
          << row.says << Shown(row);
    }
    EXPECT_TRUE(WaitState(Pod(row), row.state)) << row.state << Shown(row);
    if (row.calls > 0) {
      EXPECT_TRUE(Eventually(kPatience, [&] { return CountOf(Driver(row), row.rpc) >= row.calls; }))
          << row.rpc << " x" << CountOf(Driver(row), row.rpc);
    }
    if (*row.kept != '\0') {
      EXPECT_TRUE(
          Eventually(kPatience, [&] { return Kept(row).find(row.kept) != std::string::npos; }))
          << row.kept << Kept(row);
    }
    if (row.is_lie) {
      const std::vector<std::string> texts = {"volumed_csi_lies_total", Driver(row)};
      EXPECT_TRUE(Eventually(kPatience, [&] { return !MetricLines(texts).empty(); }));
    }
  }

  // It does right again.
  void Heal(const CsiBehaviour& row) {
    DriverOf(row).Script("[]");
    DriverOf(row).Tell(R"({"release": true})");
    // Of a volume that is still to be made no retry of the pod forgets the back-off.
    if (row.provisioned) Ctl({"retry", "--driver", Driver(row)});
    if (*row.remove != '\0') {
      std::error_code none;
      fs::remove(TargetOf(Pod(row), Volume(row).name) + "/" + row.remove, none);
    }
    if (row.moment == BehaviourMoment::kGoes) return;
    if (!row.stays_wrong) {
      EXPECT_TRUE(RetryUntilPhase(Pod(row), "Ready")) << Shown(row);
    }
    EXPECT_TRUE(Delete("Pod", Pod(row)).ok());
  }

  void ExpectNothingLeft() {
    EXPECT_EQ(LeftOvers(), "");
    EXPECT_TRUE(Eventually(kPatience, [&] { return CsiLeftOvers().empty(); })) << CsiLeftOvers();
    for (const CsiBehaviour* row : rows_) {
      const Json state = Json::parse(drivers_.at(Driver(*row))->Tell(R"({"volumes": true})"));
      for (const auto& [volume, known] : state["volumes"].items()) {
        EXPECT_TRUE(known["staged"].empty() && known["published"].empty())
            << row->number << ": " << volume << known.dump();
      }
      for (const std::string& violation : ViolationsOf(LogOf(Driver(*row)))) {
        ADD_FAILURE() << row->number << ": " << violation;
      }
    }
  }

  std::vector<const CsiBehaviour*> rows_;
  std::map<std::string, std::unique_ptr<CsiFakeDriver>> drivers_;
};

TEST_F(DriverTableTest, ACodeIsToldAndMeansWhatItMeans) {
  ASSERT_NO_FATAL_FAILURE(Run(CodeBehaviours()));
}

TEST_F(DriverTableTest, AnAnswerThatIsLateOrNoneOrNonsenseIsNotBelieved) {
  ASSERT_NO_FATAL_FAILURE(Run(AnswerBehaviours()));
}

TEST_F(DriverTableTest, WhatWasNotPublishedIsNotCalledSetUp) {
  ASSERT_NO_FATAL_FAILURE(Run(PublishLies()));
}

TEST_F(DriverTableTest, WhatWasNotTakenAwayIsNotCalledGone) {
  ASSERT_NO_FATAL_FAILURE(Run(TeardownLies()));
}

TEST_F(DriverTableTest, SizesAndFiguresAreNotBelievedUnseen) {
  ASSERT_NO_FATAL_FAILURE(Run(FigureBehaviours()));
}

// Behaviour 8: what may have been deleted is deleted again, and what is refused stays.
TEST_F(DriverTableTest, AVolumeIsDeletedWhenItsDriverHasSaidSo) {
  const CsiBehaviour row{.number = "8", .what = "delete: Internal", .provisioned = true};
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  CsiFakeOptions options = OptionsOf(Driver(row));
  options.controller_capabilities = {"CREATE_DELETE_VOLUME"};
  CsiFakeDriver driver(options);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(DriverObject(Driver(row), false) + ProvisionedStorage(row) +
                                  PodOn(Pod(row), {Volume(row)})));
  ASSERT_TRUE(WaitPhase(Pod(row), "Ready")) << Shown(row);
  driver.Script(R"([{"rpc": "DeleteVolume", "times": 1, "code": 9, "message": "in use"},
                    {"rpc": "DeleteVolume", "times": 1, "code": 13, "effect": "made"}])");
  ASSERT_TRUE(Delete("Pod", Pod(row)).ok());
  EXPECT_TRUE(WaitGone(Pod(row))) << Shown(row);
  EXPECT_EQ(CountOf(Driver(row), "DeleteVolume"), 0) << "its claim is there";
  ASSERT_TRUE(Delete("PersistentVolumeClaim", Volume(row).name).ok());
  EXPECT_TRUE(Eventually(kPatience, [&] { return CountOf(Driver(row), "DeleteVolume") >= 3; }))
      << CountOf(Driver(row), "DeleteVolume");
  EXPECT_EQ(driver.Tell(R"({"volumes": true})"), R"({"ok":true,"volumes":{}})");
  EXPECT_EQ(CountOf(Driver(row), "CreateVolume"), 1);
}

// Behaviour 19.
TEST_F(DriverTableTest, ASecretThatADriverRepeatsIsShownNowhere) {
  constexpr const char* kCanary = "canary-c51d2e";
  const std::string name = "b19.example.com";
  settings["log-level"] = "debug";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  CsiFakeDriver driver(OptionsOf(name));
  driver.Script(R"([{"rpc": "NodeStageVolume", "code": 9, "message": "with {secrets}."},
                    {"rpc": "NodePublishVolume", "code": 13, "message": "with {secrets}."}])");
  CsiTestVolume volume = VolumeOf("v19", name);
  volume.source =
      "nodeStageSecretRef: {name: s, namespace: default}\n"
      "    nodePublishSecretRef: {name: s, namespace: default}";
  ASSERT_NO_FATAL_FAILURE(ApplyOk(
      std::string("apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: "
                  "default}\nstringData: {key: ") +
      kCanary + "}\n" + DriverObject(name, false) + Storage(volume) + PodOn("p19", {volume})));
  ASSERT_TRUE(WaitSays("p19", "NodeStageVolume: FailedPrecondition: with ")) << Explain("p19");
  std::string seen = Explain("p19");
  driver.Script(R"([{"rpc": "NodePublishVolume", "code": 13, "message": "with {secrets}."}])");
  Ctl({"retry", "p19"});
  ASSERT_TRUE(WaitSays("p19", "NodePublishVolume: Internal: with ")) << Explain("p19");
  seen += Explain("p19") + Ctl({"describe", "pod", "p19"}).output +
          Ctl({"get", "pods", "-o", "yaml"}).output + ReadText(log_path());
  EXPECT_EQ(seen.find(kCanary), std::string::npos);
  for (const auto& file : fs::recursive_directory_iterator(root() + "/volumed/records")) {
    EXPECT_EQ(ReadText(file.path()).find(kCanary), std::string::npos) << file.path();
  }
  int repeated = 0;
  for (const CsiFakeEntry& entry : LogOf(name)) {
    if (entry.text.find(kCanary) != std::string::npos) ++repeated;
  }
  EXPECT_GE(repeated, 2) << "the driver has said it";
  driver.Script("[]");
  EXPECT_TRUE(RetryUntilPhase("p19", "Ready")) << Explain("p19");

  // A restart sends the driver nothing, and the driver remembers what it was sent.
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  driver.Script(std::string(R"([{"rpc": "NodeUnpublishVolume", "code": 13, "message": "left )") +
                kCanary + R"(."}])");
  ASSERT_TRUE(Delete("Pod", "p19").ok());
  ASSERT_TRUE(WaitSays("p19", "NodeUnpublishVolume: Internal: left ***stripped***"))
      << Explain("p19");
  seen = Explain("p19") + Ctl({"get", "pods", "-o", "yaml"}).output + ReadText(log_path());
  EXPECT_EQ(seen.find(kCanary), std::string::npos);
  driver.Script("[]");
  EXPECT_TRUE(RetryUntilGone("p19")) << Explain("p19");
}

}  // namespace
}  // namespace volumed::driver_table_test
