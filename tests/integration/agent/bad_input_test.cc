// What the daemon makes of manifests that are not right, and of sources that do not deliver.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "integration/agent/agent_fixture.h"
#include "places.h"

namespace volumed::bad_input_test {
namespace {

constexpr int kGoodFiles = 6;

// A volume that no container mounts is not made present; so one does.
std::string Pod(const std::string& name, const std::string& uid, const std::string& volume,
                const std::string& source) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: " + uid +
         "}\nspec:\n  containers:\n    - name: main\n      image: i\n      volumeMounts: [{name: " +
         volume + ", mountPath: /v}]\n  volumes:\n    - {name: " + volume + ", " + source + "}\n";
}

std::string EmptyDirPod(const std::string& name) {
  return Pod(name, "uid-" + name, "data", "emptyDir: {}");
}

std::string ConfigPod(const std::string& name, const std::string& value) {
  return Pod(name, "uid-" + name, "cfg", "configMap: {name: cfg-" + name + "}") +
         "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cfg-" + name +
         "}\ndata: {key: " + value + "}\n";
}

struct BadManifest {
  const char* name;
  std::string text;
  const char* reason;  // a part of what is told
};

std::vector<BadManifest> BadManifests() {
  const std::string head = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad, uid: bad}\nspec:\n";
  const std::string containers = "  containers: [{name: main, image: i}]\n";
  return {
      {"broken YAML", "apiVersion: v1\nkind: [Pod\n", ""},
      {"broken JSON", "{\"apiVersion\": \"v1\", \"kind\": ", ""},
      {"not an object", "- just\n- a list\n", ""},
      {"binary", std::string("\x00\xff\xfe\x01", 4), ""},
      {"unknown kind", "apiVersion: v1\nkind: Frobnicator\nmetadata: {name: x}\n", "kind"},
      {"no name", "apiVersion: v1\nkind: Pod\nmetadata: {}\nspec:\n" + containers, "name"},
      {"bad name", Replaced(head, "name: bad", "name: Not_A_Name") + containers, "name"},
      {"volumes of the wrong type", head + containers + "  volumes: many\n", "volumes"},
      {"volume without a name", head + containers + "  volumes: [{emptyDir: {}}]\n", "name"},
      {"two sources in a volume",
       head + containers + "  volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}]\n", "v"},
      {"mode out of range",
       head + containers + "  volumes: [{name: v, secret: {secretName: s, defaultMode: 99999}}]\n",
       "defaultMode"},
      {"bad quantity",
       head + containers + "  volumes: [{name: v, emptyDir: {sizeLimit: 12parsecs}}]\n",
       "sizeLimit"},
      {"path that leaves",
       head + containers +
           "  volumes: [{name: v, configMap: {name: c, items: [{key: k, path: ../../etc}]}}]\n",
       "path"},
      {"uid that is a path", Replaced(head, "uid: bad", "uid: ../../etc") + containers, "uid"},
      {"a YAML bomb",
       "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
       "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
       "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
       "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n",
       ""},
  };
}

class BadInputTest : public AgentTest {
 protected:
  std::string Manifest(const std::string& file) const { return manifests() + "/" + file; }
  // Written beside and renamed into place, as a careful writer does it.
  void Place(const std::string& file, const std::string& text) {
    WriteText(scratch() + "/new", text);
    ASSERT_EQ(::rename((scratch() + "/new").c_str(), Manifest(file).c_str()), 0);
  }
  // All that is told of problems of `file`, or "".
  std::string ProblemsOf(const std::string& file) {
    std::string told;
    const v1::GetSourcesResponse sources = Sources();
    for (const v1::Source& source : sources.sources()) {
      for (const v1::ManifestProblem& problem : source.problems()) {
        if (problem.file().ends_with(file))
          told += problem.field() + ": " + problem.reason() + "\n";
      }
    }
    return told;
  }
  std::string ConfigOf(const std::string& pod) {
    return ReadText(VolumePath("uid-" + pod, "configmap", "cfg") + "/key");
  }
  v1::Source SourceNamed(const std::string& part) {
    const v1::GetSourcesResponse sources = Sources();
    for (const v1::Source& source : sources.sources()) {
      if (source.name().find(part) != std::string::npos) return source;
    }
    ADD_FAILURE() << "no source " << part;
    return {};
  }
};

TEST_F(BadInputTest, BrokenFileAmongGoodOnesDisturbsNone) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  std::vector<std::string> good;
  for (int i = 0; i < kGoodFiles; ++i) {
    good.push_back("good" + std::to_string(i));
    Place(good.back() + ".yaml", EmptyDirPod(good.back()));
  }
  for (const std::string& pod : good) ASSERT_TRUE(WaitPhase(pod, "Ready")) << pod;
  const std::vector<std::string> mounts = MountsBelow(root());
  for (const BadManifest& bad : BadManifests()) {
    SCOPED_TRACE(bad.name);
    Place("bad.yaml", bad.text);
    ASSERT_TRUE(Eventually(kPatience, [&] { return !ProblemsOf("bad.yaml").empty(); }));
    EXPECT_NE(ProblemsOf("bad.yaml").find(bad.reason), std::string::npos) << ProblemsOf("bad.yaml");
    const std::string another = "beside";
    Place("beside.yaml", EmptyDirPod(another));
    EXPECT_TRUE(WaitPhase(another, "Ready"));
    ASSERT_EQ(::unlink(Manifest("beside.yaml").c_str()), 0);
    EXPECT_TRUE(WaitGone(another));
    for (const std::string& pod : good) EXPECT_EQ(FindPod(pod)->phase(), "Ready") << pod;
    EXPECT_FALSE(FindPod("bad").has_value());
    ASSERT_EQ(::unlink(Manifest("bad.yaml").c_str()), 0);
    ASSERT_TRUE(Eventually(kPatience, [&] { return ProblemsOf("bad.yaml").empty(); }));
  }
  EXPECT_EQ(MountsBelow(root()), mounts);
  EXPECT_TRUE(AgentRuns());
}

TEST_F(BadInputTest, ApplyOfBrokenManifestTellsFieldAndAppliesNothing) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (const BadManifest& bad : BadManifests()) {
    SCOPED_TRACE(bad.name);
    WriteText(scratch() + "/bad.yaml", EmptyDirPod("first") + "---\n" + bad.text);
    const CommandResult result = Ctl({"apply", "-f", scratch() + "/bad.yaml"});
    EXPECT_EQ(result.exit_status, 7) << result.output;
    EXPECT_NE(result.output.find(bad.reason), std::string::npos) << result.output;
    EXPECT_NE(result.output.find("bad.yaml"), std::string::npos) << result.output;
  }
  EXPECT_FALSE(FindPod("first").has_value());
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(BadInputTest, FileThatTurnsBadKeepsItsLastGoodObjectsAndUnlinkDeletes) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  Place("a.yaml", ConfigPod("a", "one"));
  ASSERT_TRUE(WaitPhase("a", "Ready"));
  for (const std::string& bad : {std::string("kind: ["), std::string(), std::string("x\n")}) {
    SCOPED_TRACE(bad);
    Place("a.yaml", bad);
    ASSERT_TRUE(Eventually(kPatience, [&] { return !ProblemsOf("a.yaml").empty(); }));
    EXPECT_EQ(ConfigOf("a"), "one");
    EXPECT_EQ(FindPod("a")->phase(), "Ready");
  }
  const CommandResult sources = Ctl({"sources"});
  EXPECT_NE(sources.output.find("a.yaml"), std::string::npos) << sources.output;
  Place("a.yaml", ConfigPod("a", "two"));
  ASSERT_TRUE(Eventually(kPatience, [&] { return ConfigOf("a") == "two"; }));
  EXPECT_EQ(ProblemsOf("a.yaml"), "");
  ASSERT_EQ(::unlink(Manifest("a.yaml").c_str()), 0);
  ASSERT_TRUE(WaitGone("a"));
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(BadInputTest, SlowTruncateAndWriteNeverShowsHalfAFile) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  Place("a.yaml", ConfigPod("a", "one"));
  ASSERT_TRUE(WaitPhase("a", "Ready"));
  const std::string next = ConfigPod("a", "two");
  std::ofstream slow(Manifest("a.yaml"), std::ios::trunc);
  for (const char byte : next) {
    slow << byte << std::flush;
    std::this_thread::sleep_for(Milliseconds(2));
    ASSERT_EQ(ConfigOf("a"), "one");
  }
  EXPECT_EQ(FindPod("a")->phase(), "Ready");
  slow.close();
  ASSERT_TRUE(Eventually(kPatience, [&] { return ConfigOf("a") == "two"; }));
}

TEST_F(BadInputTest, DuplicateUidAndNameAcrossSourcesAreToldAndTheFirstStays) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  Place("a.yaml", ConfigPod("a", "from-file"));
  ASSERT_TRUE(WaitPhase("a", "Ready"));
  // The same name with another uid, and the same uid with another name.
  Place("b.yaml", Pod("a", "other-uid", "data", "emptyDir: {}"));
  Place("c.yaml", Pod("c", "uid-a", "data", "emptyDir: {}"));
  const grpc::Status applied = Apply(Pod("a", "third-uid", "data", "emptyDir: {}"));
  EXPECT_NE(applied.error_message().find("a.yaml"), std::string::npos) << applied.error_message();
  ASSERT_TRUE(Eventually(
      kPatience, [&] { return !ProblemsOf("b.yaml").empty() && !ProblemsOf("c.yaml").empty(); }));
  EXPECT_EQ(FindPod("a")->uid(), "uid-a");
  EXPECT_EQ(ConfigOf("a"), "from-file");
  EXPECT_FALSE(FindPod("c").has_value());
  const CommandResult explained = Ctl({"explain", "a"});
  EXPECT_EQ(explained.exit_status, 0) << explained.output;
  EXPECT_NE(explained.output.find("b.yaml"), std::string::npos) << explained.output;
  const CommandResult sources = Ctl({"sources", "-o", "json"});
  EXPECT_NE(sources.output.find("uid"), std::string::npos) << sources.output;
}

TEST_F(BadInputTest, VolumeListThatChangesUnderOneUidIsRefusedAndTold) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  Place("a.yaml", Pod("a", "uid-a", "data", "emptyDir: {}"));
  ASSERT_TRUE(WaitPhase("a", "Ready"));
  WriteText(VolumePath("uid-a", "empty-dir", "data") + "/file", "kept");
  Place("a.yaml", Pod("a", "uid-a", "other", "emptyDir: {}"));
  ASSERT_TRUE(Eventually(kPatience, [&] { return !ProblemsOf("a.yaml").empty(); }));
  EXPECT_NE(ProblemsOf("a.yaml").find("volumes"), std::string::npos) << ProblemsOf("a.yaml");
  EXPECT_EQ(ReadText(VolumePath("uid-a", "empty-dir", "data") + "/file"), "kept");
  EXPECT_FALSE(Exists(VolumePath("uid-a", "empty-dir", "other")));
}

TEST_F(BadInputTest, NothingIsUnmountedUntilEverySourceHasDelivered) {
  const std::string second = scratch() + "/second";
  settings["manifest-dir"] = "[" + manifests() + ", " + second + "]";
  std::filesystem::create_directory(second);
  Place("keep.yaml", EmptyDirPod("keep"));
  Place("a.yaml", EmptyDirPod("a"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("a", "Ready"));
  KillAgent();
  // The file goes while nobody looks, and a source does not deliver: is the pod unwanted, or did it
  // only move there?
  ASSERT_EQ(::unlink(Manifest("a.yaml").c_str()), 0);
  std::filesystem::rename(second, scratch() + "/away");
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return FindPod("a").has_value(); }));
  EXPECT_TRUE(
      Eventually(kPatience, [&] { return !SourceNamed("/second").incomplete_because().empty(); }));
  EXPECT_FALSE(WaitGone("a", std::chrono::seconds(3)));
  EXPECT_TRUE(Exists(VolumePath("uid-a", "empty-dir", "data")));
  const CommandResult explained = Ctl({"explain", "a"});
  EXPECT_NE(explained.output.find("/second"), std::string::npos) << explained.output;
  // Another one appears, as empty as the mount point of a disk that is not mounted.
  std::filesystem::create_directory(second);
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return SourceNamed("/second").incomplete_because().find("another one") != std::string::npos;
  }));
  EXPECT_FALSE(WaitGone("a", std::chrono::seconds(3)));
  // It is the one that was there: in order, and empty.
  std::filesystem::remove(second);
  std::filesystem::rename(scratch() + "/away", second);
  ASSERT_TRUE(WaitGone("a")) << Ctl({"sources"}).output;
}

TEST_F(BadInputTest, ASourceThatNeverComesIsAcceptedAsItIsByCommand) {
  const std::string second = scratch() + "/second";
  Place("keep.yaml", EmptyDirPod("keep"));
  Place("a.yaml", EmptyDirPod("a"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("a", "Ready"));
  ASSERT_EQ(StopAgent(), 0);
  settings["manifest-dir"] = "[" + manifests() + ", " + second + "]";
  ASSERT_EQ(::unlink(Manifest("a.yaml").c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return FindPod("a").has_value(); }));
  const CommandResult accepted = Ctl({"source", "accept", "manifests:" + second});
  ASSERT_EQ(accepted.exit_status, 0) << accepted.output;
  EXPECT_TRUE(WaitGone("a")) << Ctl({"sources"}).output;
}

TEST_F(BadInputTest, DirectoryThatVanishesKeepsItsLastList) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  Place("a.yaml", EmptyDirPod("a"));
  ASSERT_TRUE(WaitPhase("a", "Ready"));
  ASSERT_EQ(::rename(manifests().c_str(), (scratch() + "/moved").c_str()), 0);
  ASSERT_TRUE(Eventually(kPatience, [&] { return !SourceNamed("manifests:").healthy(); }));
  EXPECT_FALSE(WaitGone("a", Milliseconds(500)));
  EXPECT_EQ(FindPod("a")->phase(), "Ready");
  ASSERT_EQ(::rename((scratch() + "/moved").c_str(), manifests().c_str()), 0);
  ASSERT_TRUE(Eventually(kPatience, [&] { return SourceNamed("manifests:").healthy(); }));
  ASSERT_EQ(::unlink(Manifest("a.yaml").c_str()), 0);
  EXPECT_TRUE(WaitGone("a"));
}

TEST_F(BadInputTest, BadConfigurationIsRefusedWithItsKey) {
  settings["deadline-mount"] = "soon";
  settings["no-such-key"] = "1";
  WriteText(scratch() + "/c.yaml", "deadline-mount: soon\nno-such-key: 1\n");
  const CommandResult result =
      RunCommand({VolumedPath(), "run", "--config", scratch() + "/c.yaml"});
  EXPECT_NE(result.exit_status, 0);
  EXPECT_NE(result.output.find("deadline-mount"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("no-such-key"), std::string::npos) << result.output;
}

TEST_F(BadInputTest, SecondAgentOnOneRootIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const CommandResult second =
      RunCommand({VolumedPath(), "run", "--config", scratch() + "/config.yaml", "--metrics-address",
                  "127.0.0.1:0"});
  EXPECT_NE(second.exit_status, 0);
  EXPECT_NE(second.output.find("another volumed (pid " + std::to_string(agent_pid()) + ")"),
            std::string::npos)
      << second.output;
  EXPECT_EQ(Ctl({"get", "pods"}).exit_status, 0);
}

TEST_F(BadInputTest, RootThatWeDidNotMakeNeedsToBeAdopted) {
  const std::string foreign = root() + "/pods/some-uid/volumes/kubernetes.io~empty-dir/data";
  std::filesystem::create_directories(foreign);
  WriteText(foreign + "/file", "theirs");
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return ReadText(log_path()).find("adopt-root") != std::string::npos;
  })) << ReadText(log_path());
  EXPECT_NE(StopAgent(), 0);
  EXPECT_EQ(ReadText(foreign + "/file"), "theirs");
}

// What a kubelet leaves of a pod: its own entries go with the pod, anybody else's are named.
TEST_F(BadInputTest, PodDirectoriesOfAnAdoptedRootGoWithKubeletsEntries) {
  const std::string pods = root() + "/pods/";
  for (const char* pod : {"left", "noted"}) {
    std::filesystem::create_directories(pods + pod + "/volumes/kubernetes.io~empty-dir/data");
    std::filesystem::create_directories(pods + pod + "/plugins/kubernetes.io~empty-dir/data");
    std::filesystem::create_directories(pods + pod + "/containers/main");
    WriteText(pods + pod + "/volumes/kubernetes.io~empty-dir/data/file", "of the pod");
    WriteText(pods + pod + "/plugins/kubernetes.io~empty-dir/data/ready", "");
    WriteText(pods + pod + "/containers/main/6a0c1f", "said at its end");
    WriteText(pods + pod + "/etc-hosts", "127.0.0.1 localhost\n");
  }
  WriteText(pods + "noted/notes.txt", "an administrator's");
  settings["adopt-root"] = "true";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_EQ(Ctl({"source", "accept", "adopted-root", "--yes"}).exit_status, 0);
  EXPECT_TRUE(Eventually(kPatience, [&] { return !Exists(pods + "left"); }))
      << Ctl({"get", "pods"}).output << ReadText(log_path());
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return ReadText(log_path()).find("noted/notes.txt is not the agent's") != std::string::npos;
  })) << ReadText(log_path());
  EXPECT_EQ(ReadText(pods + "noted/notes.txt"), "an administrator's");
  EXPECT_TRUE(Exists(pods + "noted/etc-hosts"));
}

}  // namespace
}  // namespace volumed::bad_input_test
