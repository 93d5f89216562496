#include "integration/agent/example_pod.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "places.h"

namespace volumed {
namespace {

struct ExpectedFile {
  std::string path;
  std::string content;
  mode_t mode;
};

std::string FileProblem(const ExpectedFile& file) {
  struct stat stat {};
  if (::stat(file.path.c_str(), &stat) != 0) return file.path + " is not there";
  const std::string content = ReadText(file.path);
  if (content != file.content) return file.path + " holds '" + content + "'";
  if ((stat.st_mode & 07777) != file.mode || stat.st_gid != 2000) {
    std::ostringstream text;
    text << file.path << " has mode " << std::oct << (stat.st_mode & 07777) << std::dec
         << ", group " << stat.st_gid;
    return text.str();
  }
  return "";
}

bool IsTmpfs(const std::string& path) {
  struct statfs stat {};
  return ::statfs(path.c_str(), &stat) == 0 && stat.f_type == TMPFS_MAGIC;
}

// Exactly one version of a payload, and nothing half-written beside it.
std::string PayloadProblem(const std::string& directory) {
  size_t versions = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name == "..data_tmp") return directory + " has a stale ..data_tmp";
    if (name.starts_with("..") && name != "..data") ++versions;
  }
  return versions == 1 ? "" : directory + " has " + std::to_string(versions) + " versions";
}

std::string StackedMounts(const std::string& below) {
  std::map<std::string, int> points;
  for (const std::string& line : MountsBelow(below)) {
    std::istringstream fields(line);
    std::string id, parent, device, inner, point;
    fields >> id >> parent >> device >> inner >> point;
    if (++points[point] > 1) return "two mounts at " + point;
  }
  return "";
}

}  // namespace

std::string ExampleObjects(const std::string& greeting) {
  return Replaced(ReadText(SourcePath("examples/objects.yaml")), "greeting: hello",
                  "greeting: " + greeting);
}

std::string ExamplePod(const std::string& host_path) {
  return Replaced(ReadText(SourcePath("examples/pod.yaml")), "/var/tmp/volumed-example", host_path);
}

void ExamplePodTest::WriteForeignFiles(const std::string& text) {
  WriteText(ExampleVolume("empty-dir", "data") + "/foreign", text);
  WriteText(ExampleVolume("empty-dir", "cache") + "/foreign", text);
}

std::string ExamplePodTest::ForeignProblem(const std::string& text) {
  for (const char* volume : {"data", "cache"}) {
    const std::string path = ExampleVolume("empty-dir", volume) + "/foreign";
    if (ReadText(path) != text) return path + " is lost";
  }
  return "";
}

std::string ExamplePodTest::ExampleProblem(const std::string& greeting) {
  const std::string config = ExampleVolume("configmap", "config");
  const std::string secret = ExampleVolume("secret", "secret");
  const std::string info = ExampleVolume("downward-api", "info");
  const std::string everything = ExampleVolume("projected", "everything");
  const std::vector<ExpectedFile> files = {
      {config + "/greeting", greeting, 0644},
      {config + "/nginx.conf", "server { listen 8080; root /srv/www; }\n", 0644},
      {secret + "/username", "web", 0440},
      {secret + "/password", "not-a-real-password", 0440},
      {info + "/labels", "app=\"web\"", 0644},
      {info + "/memory", "67108864", 0644},
      {everything + "/config/greeting", greeting, 0644},
      {everything + "/secret/username", "web", 0440},
      {everything + "/name", "web", 0644},
  };
  for (const ExpectedFile& file : files) {
    if (std::string problem = FileProblem(file); !problem.empty()) return problem;
  }
  for (const std::string& payload : {config, secret, info, everything}) {
    if (std::string problem = PayloadProblem(payload); !problem.empty()) return problem;
  }
  const std::string token = ReadText(everything + "/token");
  if (std::count(token.begin(), token.end(), '.') != 2) return "the token is '" + token + "'";
  for (const std::string& path : {secret, everything, ExampleVolume("empty-dir", "cache")}) {
    if (!IsTmpfs(path)) return path + " is not on a tmpfs";
  }
  if (!Exists(host_path())) return "the hostPath is not there";
  return ViewProblem();
}

std::string ExamplePodTest::ViewProblem() {
  const std::optional<v1::Pod> pod = FindPod("web");
  if (!pod) return "the agent does not show the pod";
  if (pod->phase() != "Ready") return pod->ShortDebugString();
  std::set<std::string> sub_paths;
  for (const v1::Volume& volume : pod->volumes()) {
    if (volume.state() != "SetUp" || volume.uncertain() || volume.has_problem()) {
      return volume.ShortDebugString();
    }
    for (const v1::SubPathMount& mount : volume.sub_paths()) sub_paths.insert(mount.host_path());
  }
  if (sub_paths.size() != 2)
    return "the pod has not two subPath mounts: " + pod->ShortDebugString();
  for (const std::string& path : sub_paths) {
    if (MountsBelow(path).empty()) return path + " is not mounted";
  }
  return StackedMounts(root() + "/pods");
}

}  // namespace volumed
