// The floor: the least that pods like those of bench/beside cost. A bare loop on one thread makes
// the same directories, files and tmpfs mounts by plain system calls, one service account token per
// pod (ES256, as the agent signs), and one durable row per pod (SQLite, WAL, synchronous=FULL, many
// rows in a transaction, as src/records does). It keeps no state, checks nothing and survives
// nothing.
//
//   floor_bench [--pods 1000] [--rows-per-commit 64] [--scratch /var/tmp] [--json]
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace volumed {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::pair<std::string, std::string>>;  // name, content

[[noreturn]] void Die(const std::string& what) {
  std::cerr << "floor_bench: " << what << "\n";
  std::exit(EXIT_FAILURE);
}

int Check(int result, const char* call, const std::string& path) {
  if (result < 0) Die(std::string(call) + " " + path + ": " + std::strerror(errno));
  return result;
}

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { ::close(fd_); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

int OpenDir(int at, const std::string& name) {
  return Check(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", name);
}

int MakeDir(int at, const std::string& name, mode_t mode) {
  Check(::mkdirat(at, name.c_str(), mode), "mkdir", name);
  return OpenDir(at, name);
}

void WriteFile(int at, const std::string& name, const std::string& content) {
  const Fd fd(Check(::openat(at, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644),
                    "create", name));
  if (content.empty()) return;
  Check(static_cast<int>(::write(fd.get(), content.data(), content.size())), "write", name);
}

// A token's signature. The key is made once; ES256 is what the agent's local issuer signs with.
class Signer {
 public:
  Signer() : key_(EVP_EC_gen("P-256"), EVP_PKEY_free) {
    if (!key_) Die("OpenSSL makes no P-256 key");
  }

  std::string Token(const std::string& subject) const {
    // A real header and payload have about this length.
    const std::string claims = subject + std::string(700, 'x');
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                     EVP_MD_CTX_free);
    unsigned char signature[128];
    size_t size = sizeof signature;
    if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) != 1 ||
        EVP_DigestSign(context.get(), signature, &size,
                       reinterpret_cast<const unsigned char*>(claims.data()), claims.size()) != 1) {
      Die("OpenSSL does not sign");
    }
    return claims + std::string(reinterpret_cast<const char*>(signature), size);
  }

 private:
  std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
};

// The durable rows, so many to a transaction.
class Rows {
 public:
  Rows(const std::string& file, int rows_per_commit) : rows_per_commit_(rows_per_commit) {
    if (sqlite3_open(file.c_str(), &db_) != SQLITE_OK) Die("sqlite: " + file);
    Run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE records (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID");
    put_ = Prepare("INSERT INTO records VALUES (?, ?)");
    remove_ = Prepare("DELETE FROM records WHERE key = ?");
  }
  ~Rows() {
    sqlite3_finalize(put_);
    sqlite3_finalize(remove_);
    sqlite3_close(db_);
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  void Put(const std::string& key, const std::string& value) {
    sqlite3_bind_blob(put_, 2, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
    Step(put_, key);
  }
  void Remove(const std::string& key) { Step(remove_, key); }
  void Commit() {
    if (open_rows_ > 0) Run("COMMIT");
    open_rows_ = 0;
  }

 private:
  void Run(const char* sql) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
      Die(std::string("sqlite: ") + sql + ": " + sqlite3_errmsg(db_));
    }
  }
  sqlite3_stmt* Prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql, -1, &statement, nullptr) != SQLITE_OK) {
      Die(std::string("sqlite: ") + sql + ": " + sqlite3_errmsg(db_));
    }
    return statement;
  }
  void Step(sqlite3_stmt* statement, const std::string& key) {
    if (open_rows_ == 0) Run("BEGIN");
    sqlite3_bind_text(statement, 1, key.data(), static_cast<int>(key.size()), SQLITE_TRANSIENT);
    if (sqlite3_step(statement) != SQLITE_DONE) Die(std::string("sqlite: ") + sqlite3_errmsg(db_));
    sqlite3_reset(statement);
    if (++open_rows_ >= rows_per_commit_) Commit();
  }

  const int rows_per_commit_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* put_ = nullptr;
  sqlite3_stmt* remove_ = nullptr;
  int open_rows_ = 0;
};

struct Volume {
  std::string plugin, name;
  bool in_memory = false;
  Files files;
};

std::vector<Volume> VolumesOf(const std::string& pod, const Signer& signer) {
  return {{"kubernetes.io~configmap", "c", false, {{"a", "one"}, {"b", "two"}, {"c", "three"}}},
          {"kubernetes.io~secret", "s", true, {{"user", "somebody"}, {"word", "something"}}},
          {"kubernetes.io~projected",
           "p",
           true,
           {{"token", signer.Token(pod)}, {"namespace", "default"}}},
          {"kubernetes.io~empty-dir", "e", false, {}}};
}

void MountTmpfs(int at, const std::string& name) {
  const Fd context(Check(::fsopen("tmpfs", FSOPEN_CLOEXEC), "fsopen", "tmpfs"));
  Check(::fsconfig(context.get(), FSCONFIG_SET_STRING, "size", "64m", 0), "fsconfig", "size");
  Check(::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0), "fsconfig", "create");
  const Fd mount(Check(::fsmount(context.get(), FSMOUNT_CLOEXEC, 0), "fsmount", "tmpfs"));
  Check(::move_mount(mount.get(), "", at, name.c_str(), MOVE_MOUNT_F_EMPTY_PATH), "move_mount",
        name);
}

constexpr char kVersion[] = "..2026_01_01_00_00_00.123456789";

// As an atomic writer does: a directory of this version, one rename, links from the names.
void WritePayload(int volume, const Files& files) {
  {
    const Fd version(MakeDir(volume, kVersion, 0755));
    for (const auto& [name, content] : files) WriteFile(version.get(), name, content);
  }
  Check(::symlinkat(kVersion, volume, "..data_tmp"), "symlink", "..data_tmp");
  Check(::renameat(volume, "..data_tmp", volume, "..data"), "rename", "..data_tmp");
  for (const auto& [name, content] : files) {
    Check(::symlinkat(("..data/" + name).c_str(), volume, name.c_str()), "symlink", name);
  }
}

void RemovePayload(int volume, const Files& files) {
  const Fd version(OpenDir(volume, kVersion));
  for (const auto& [name, content] : files) {
    Check(::unlinkat(volume, name.c_str(), 0), "unlink", name);
    Check(::unlinkat(version.get(), name.c_str(), 0), "unlink", name);
  }
  Check(::unlinkat(volume, "..data", 0), "unlink", "..data");
  Check(::unlinkat(volume, kVersion, AT_REMOVEDIR), "rmdir", kVersion);
}

std::string Marker(const Volume& volume) {
  return volume.files.empty() ? volume.name : "wrapped_" + volume.name;
}

void SetUp(int pods, const std::string& uid, const Signer& signer) {
  const Fd pod(MakeDir(pods, uid, 0750));
  const Fd volumes(MakeDir(pod.get(), "volumes", 0750));
  const Fd plugins(MakeDir(pod.get(), "plugins", 0750));
  const Fd markers(MakeDir(plugins.get(), "kubernetes.io~empty-dir", 0750));
  for (const Volume& volume : VolumesOf(uid, signer)) {
    const Fd plugin(MakeDir(volumes.get(), volume.plugin, 0750));
    Check(::mkdirat(plugin.get(), volume.name.c_str(), 0750), "mkdir", volume.name);
    if (volume.in_memory) MountTmpfs(plugin.get(), volume.name);
    const Fd directory(OpenDir(plugin.get(), volume.name));
    Check(::fchmod(directory.get(), volume.in_memory ? 01777 : 0777), "chmod", volume.name);
    if (!volume.files.empty()) WritePayload(directory.get(), volume.files);
    const Fd marker(MakeDir(markers.get(), Marker(volume), 0750));
    WriteFile(marker.get(), "ready", "");
  }
}

void TearDown(int pods, const std::string& root, const std::string& uid,
              const std::vector<Volume>& all) {
  {
    const Fd pod(OpenDir(pods, uid));
    const Fd volumes(OpenDir(pod.get(), "volumes"));
    const Fd plugins(OpenDir(pod.get(), "plugins"));
    const Fd markers(OpenDir(plugins.get(), "kubernetes.io~empty-dir"));
    for (const Volume& volume : all) {
      const std::string marker = Marker(volume);
      if (volume.in_memory) {
        const std::string path =
            root + "/pods/" + uid + "/volumes/" + volume.plugin + "/" + volume.name;
        Check(::umount2(path.c_str(), UMOUNT_NOFOLLOW), "unmount", path);
      } else if (!volume.files.empty()) {
        const Fd directory(OpenDir(volumes.get(), volume.plugin + "/" + volume.name));
        RemovePayload(directory.get(), volume.files);
      }
      for (const std::string& name : {volume.plugin + "/" + volume.name, volume.plugin}) {
        Check(::unlinkat(volumes.get(), name.c_str(), AT_REMOVEDIR), "rmdir", name);
      }
      Check(::unlinkat(markers.get(), (marker + "/ready").c_str(), 0), "unlink", "ready");
      Check(::unlinkat(markers.get(), marker.c_str(), AT_REMOVEDIR), "rmdir", marker);
    }
  }
  for (const char* name : {"/plugins/kubernetes.io~empty-dir", "/plugins", "/volumes", ""}) {
    Check(::unlinkat(pods, (uid + name).c_str(), AT_REMOVEDIR), "rmdir", uid + name);
  }
}

double CpuMillis() {
  rusage usage{};
  Check(::getrusage(RUSAGE_SELF, &usage), "getrusage", "self");
  const auto millis = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return millis(usage.ru_utime) + millis(usage.ru_stime);
}

struct Cost {
  double wall_ms = 0, cpu_ms = 0;
};

template <typename Work>
Cost Measure(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu = CpuMillis();
  work();
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
  return {wall.count(), CpuMillis() - cpu};
}

struct Costs {
  Cost set_up, teardown;
};

void Print(const Costs& costs, int pods, bool as_json) {
  if (as_json) {
    std::printf(
        "{\"setup_wall_ms\": %.3f, \"setup_cpu_ms\": %.3f, \"teardown_wall_ms\": %.3f, "
        "\"teardown_cpu_ms\": %.3f}\n",
        costs.set_up.wall_ms, costs.set_up.cpu_ms, costs.teardown.wall_ms, costs.teardown.cpu_ms);
    return;
  }
  std::printf("%d pods, milliseconds of each\n%-10s %8s %8s\n", pods, "", "wall", "cpu");
  for (const auto& [what, cost] :
       {std::pair("set-up", costs.set_up), {"teardown", costs.teardown}}) {
    std::printf("%-10s %8.3f %8.3f\n", what, cost.wall_ms / pods, cost.cpu_ms / pods);
  }
}

// Its mounts are nobody else's, and end with it; below the root they are shared, as the agent's
// are.
void EnterOwnMountNamespace(const std::string& root) {
  Check(::unshare(CLONE_NEWNS), "unshare", "the mount namespace");
  Check(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "mount", "/");
  Check(::mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr), "mount", root);
  Check(::mount("none", root.c_str(), nullptr, MS_SHARED, nullptr), "mount", root);
}

Costs Run(const std::string& root, int pods, int rows_per_commit) {
  EnterOwnMountNamespace(root);
  const Fd top(OpenDir(AT_FDCWD, root));
  const Fd directory(MakeDir(top.get(), "pods", 0750));
  const Signer signer;
  Rows rows(root + "/records.db", rows_per_commit);
  const auto uid = [](int number) { return "floor-" + std::to_string(number); };
  Costs costs;
  costs.set_up = Measure([&] {
    for (int i = 0; i < pods; ++i) {
      rows.Put(uid(i), std::string(400, 'r'));
      SetUp(directory.get(), uid(i), signer);
    }
    rows.Commit();
  });
  const std::vector<Volume> volumes = VolumesOf("", signer);
  costs.teardown = Measure([&] {
    for (int i = 0; i < pods; ++i) {
      TearDown(directory.get(), root, uid(i), volumes);
      rows.Remove(uid(i));
    }
    rows.Commit();
  });
  return costs;
}

int Main(int argc, char** argv) {
  int pods = 1000, rows_per_commit = 64;
  std::string scratch = "/var/tmp";
  bool as_json = false;
  CLI::App app("the least that a pod's volumes cost");
  app.add_option("--pods", pods, "how many pods")->check(CLI::Range(1, 100000));
  app.add_option("--rows-per-commit", rows_per_commit, "how many rows share a sync")
      ->check(CLI::Range(1, 100000));
  app.add_option("--scratch", scratch, "where the root and the rows are made");
  app.add_flag("--json", as_json, "print the sums as JSON");
  CLI11_PARSE(app, argc, argv);
  if (::geteuid() != 0) Die("needs root: it mounts");
  std::string name = scratch + "/volumed-floor-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) Die("no directory below " + scratch);
  const Costs costs = Run(name, pods, rows_per_commit);
  Print(costs, pods, as_json);
  Check(::umount2(name.c_str(), MNT_DETACH), "unmount", name);
  fs::remove_all(name);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace volumed

int main(int argc, char** argv) { return volumed::Main(argc, argv); }
