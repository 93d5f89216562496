// RegistryWatch: what becomes of the sockets in the directory in which plugins register, and of the
// sockets at which drivers are, wherever these lie. It looks only at what changed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/inotify.h"
#include "base/result.h"
#include "csi/csi_caller.h"
#include "csi/trusted_roots.h"
#include "os/safe_path.h"

namespace volumed {

struct RegistryChange {
  enum class What {
    kCame,      // it was not there, or it is another file now (then it went before)
    kChanged,   // the same file may be another one's now, or events of it were lost
    kWent,      // it is not there any more
    kEndpoint,  // what there is at an endpoint may have changed
  };
  What what = What::kCame;
  // Of the sockets in the directory the path below it: "a.sock", "b/a.sock". Of an endpoint
  // SafePath::Display().
  std::string name;
  friend bool operator==(const RegistryChange&, const RegistryChange&) = default;
};

struct RegistryLook {
  std::vector<RegistryChange> changes;
  // Changes may go unseen, and the next call tries again to see them; what is in `changes` is right
  // all the same.
  std::optional<Error> error = {};
};

// Threads: one call at a time. Blocks: for look-ups in the directories.
class RegistryWatch {
 public:
  virtual ~RegistryWatch() = default;
  // What changed since the last call: everything that is there on the first. From now on these
  // endpoints are watched, and no others; those that were not before count as changed.
  virtual RegistryLook Look(const std::vector<SafePath>& endpoints) = 0;
  // An event loop may watch it: it is readable when Look() has something. -1 if there is none.
  virtual int fd() const = 0;
};

// The directory and the folders in it are watched by inotify. Names that begin with '.' are passed
// over, folders too, so that a program may make its socket beside and rename it. A symbolic link
// counts as a socket, so that somebody can say that it is none; folders behind links, or on other
// filesystems, do not count. Source: kubernetes pkg/kubelet/pluginmanager/pluginwatcher@v1.36.
//
// The directory is made (0755) when it is missing, also later on. Of an endpoint the nearest
// directory that exists is watched, for its next name on the way to the socket.
class InotifyRegistryWatch final : public RegistryWatch {
 public:
  // A folder is watched only up to so many, and so deep: whoever may write there could use up what
  // the user may have of watches.
  struct Limits {
    size_t folders = 256;
    size_t depth = 8;
  };
  // `directory` is an absolute, clean path. Errors, not applied: ResourceExhausted without an
  // inotify instance.
  static Result<std::unique_ptr<InotifyRegistryWatch>> Create(
      std::string directory, Limits limits,
      std::shared_ptr<TrustedRoots> roots = std::make_shared<TrustedRoots>());

  RegistryLook Look(const std::vector<SafePath>& endpoints) override;
  int fd() const override { return inotify_.fd(); }

 private:
  // What a watch is for. A directory has one watch, which may serve several purposes.
  struct Watch {
    std::optional<std::string> folder;  // below the directory; "" is the directory itself
    // Names in it -> the endpoints on whose way they are.
    std::map<std::string, std::set<std::string>> awaited;
    bool used() const { return folder.has_value() || !awaited.empty(); }
  };
  struct Endpoint {
    SafePath place;
    int wd = -1;
    std::string name;  // awaited there
    bool arm = true;   // it has to be looked at where it can be watched
  };
  enum class Entry { kNone, kSocket, kFolder };
  struct Found {
    Entry entry = Entry::kNone;
    SocketIdentity identity;
  };

  InotifyRegistryWatch(Inotify inotify, std::string directory, Limits limits,
                       std::shared_ptr<TrustedRoots> roots)
      : inotify_(std::move(inotify)),
        directory_(std::move(directory)),
        limits_(limits),
        roots_(std::move(roots)) {}

  void Translate(const InotifyEvent& event);
  void TranslateEntry(const std::string& folder, const InotifyEvent& event);
  void WatchIsOver(int wd, bool is_ignored);
  // Looks at what has this name now.
  void Came(const std::string& name);
  void Went(const std::string& name);
  void FolderWent(const std::string& folder);
  // Watches the folder and looks at all that is in it. Errors: also that it is not there any more.
  Status Scan(const std::string& folder);
  void ScanFolder(const std::string& folder);
  Status ScanAll();
  Status OpenDirectory();
  Found LookAt(const std::string& name) const;
  SafePath PlaceOf(const std::string& name) const { return {real_directory_, name}; }

  void SetEndpoints(const std::vector<SafePath>& endpoints);
  void Arm(const std::string& display, Endpoint& endpoint);
  void Disarm(const std::string& display, Endpoint& endpoint);
  void EndpointChanged(const std::string& display);
  Result<int> AddWatch(int directory);
  void DropIfUnused(int wd);
  void Tell(RegistryChange::What what, const std::string& name);

  Inotify inotify_;
  const std::string directory_;
  const Limits limits_;
  const std::shared_ptr<TrustedRoots> roots_;
  std::string real_directory_;  // without links; looked at by ScanAll()
  std::map<int, Watch> watches_;
  struct Folder {
    int wd = -1;
    SocketIdentity identity;
  };
  std::map<std::string, Folder> folders_;
  std::map<std::string, SocketIdentity> known_;
  std::map<std::string, Endpoint> endpoints_;  // by SafePath::Display()
  bool scan_all_ = true;
  std::vector<RegistryChange> changes_;
  std::optional<Error> error_;  // of this look
};

}  // namespace volumed
