#include "os/payload_compare.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "os/directory_reader.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

constexpr uint32_t kModeBits = 07777;

bool HasRights(const struct stat& stat, uint32_t uid, uint32_t gid, uint32_t mode) {
  return stat.st_uid == uid && stat.st_gid == gid && (stat.st_mode & kModeBits) == mode;
}

bool SetRights(int fd, uint32_t uid, uint32_t gid, uint32_t mode) {
  struct stat stat = {};
  if (::fstat(fd, &stat) != 0) return false;
  const bool wrong_owner = stat.st_uid != uid || stat.st_gid != gid;
  if (wrong_owner && ::fchown(fd, uid, gid) != 0) return false;
  // After the owner: a change of owner takes setuid and setgid.
  if (!wrong_owner && (stat.st_mode & kModeBits) == mode) return true;
  return ::fchmod(fd, mode) == 0;
}

uint32_t OwnerOf(const PayloadFile& file) { return file.uid.value_or(::geteuid()); }

bool SameContent(int fd, const std::string& wanted) {
  std::string block(65536, '\0');
  size_t position = 0;
  while (true) {
    const ssize_t size = ::read(fd, block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    if (size == 0) return position == wanted.size();
    const auto length = static_cast<size_t>(size);
    if (wanted.compare(position, length, block, 0, length) != 0) return false;
    position += length;
  }
}

bool SameFile(int directory, const char* name, const PayloadFile& file,
              const PayloadRights& rights) {
  const Descriptor opened(OpenChild(directory, name, O_RDONLY | O_NONBLOCK));
  struct stat stat = {};
  if (!opened.valid() || ::fstat(opened.get(), &stat) != 0 || !S_ISREG(stat.st_mode)) return false;
  const std::string& content = file.content.Reveal();
  return static_cast<size_t>(stat.st_size) == content.size() &&
         HasRights(stat, OwnerOf(file), rights.Group(), rights.FileMode(file.mode)) &&
         SameContent(opened.get(), content);
}

// What a directory of the payload must hold.
struct Wanted {
  std::map<std::string, const PayloadFile*> files;
  std::set<std::string> directories;
};
using WantedTree = std::map<std::string, Wanted>;  // by the directory's path, "" for the top

WantedTree BuildTree(const std::vector<PayloadFile>& files) {
  WantedTree tree;
  tree[""];
  for (const PayloadFile& file : files) {
    std::string directory;
    size_t begin = 0;
    for (size_t slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', begin)) {
      const std::string name = file.path.substr(begin, slash - begin);
      tree[directory].directories.insert(name);
      directory = file.path.substr(0, slash);
      tree[directory];
      begin = slash + 1;
    }
    tree[directory].files.emplace(file.path.substr(begin), &file);
  }
  return tree;
}

bool SameDirectory(int directory, const Wanted& wanted, const PayloadRights& rights,
                   std::vector<char>& block) {
  struct stat stat = {};
  if (::fstat(directory, &stat) != 0 ||
      !HasRights(stat, ::geteuid(), rights.Group(), rights.DirectoryMode())) {
    return false;
  }
  size_t found = 0;
  DirectoryReader reader(directory, block);
  RawEntry entry = {};
  while (reader.Next(entry)) {
    ++found;
    if (wanted.directories.count(entry.name) != 0) continue;
    const auto file = wanted.files.find(entry.name);
    if (file == wanted.files.end() || !SameFile(directory, entry.name, *file->second, rights)) {
      return false;
    }
  }
  return reader.sys_errno() == 0 && found == wanted.files.size() + wanted.directories.size();
}

}  // namespace

uint32_t PayloadRights::Group() const { return gid.value_or(::getegid()); }

bool SetDirectoryRights(int directory, const PayloadRights& rights) {
  return SetRights(directory, ::geteuid(), rights.Group(), rights.DirectoryMode());
}

bool SetFileRights(int fd, const PayloadFile& file, const PayloadRights& rights) {
  return SetRights(fd, OwnerOf(file), rights.Group(), rights.FileMode(file.mode));
}

bool IsSamePayload(int directory, const std::vector<PayloadFile>& files,
                   const PayloadRights& rights) {
  std::vector<char> block(kDirectoryBlockBytes);
  for (const auto& [path, wanted] : BuildTree(files)) {
    if (path.empty()) {
      if (!SameDirectory(directory, wanted, rights, block)) return false;
      continue;
    }
    const Descriptor opened(OpenChild(directory, path.c_str(), O_RDONLY | O_DIRECTORY));
    if (!opened.valid() || !SameDirectory(opened.get(), wanted, rights, block)) return false;
  }
  return true;
}

}  // namespace volumed
